// Where the time went, in one strip that always sums to the whole.
import './ledger.css';
import type { Ledger } from '../api/cohort';
import { formatDuration, formatShare } from '../format/units';

const WORDS: Record<string, [label: string, colour: string]> = {
  cpu: ['on CPU', 'var(--cpu)'],
  lock: ['waiting for locks', 'var(--wait)'],
  io: ['waiting for I/O', 'repeating-linear-gradient(135deg, var(--wait) 0 3px, color-mix(in srgb, var(--wait) 50%, var(--panel)) 3px 5px)'],
  gc: ['allocating, GC', 'color-mix(in srgb, var(--cpu) 60%, var(--panel))'],
  waiting: ['waiting', 'repeating-linear-gradient(45deg, var(--wait) 0 2px, color-mix(in srgb, var(--wait) 30%, var(--panel)) 2px 5px)'],
  scheduling: ['waiting for a CPU', 'color-mix(in srgb, var(--wait) 45%, var(--panel))'],
  child: ['in child spans', 'var(--child)'],
  downstream: ['in other services', 'var(--child)'],
  unexplained: ['unexplained', 'repeating-linear-gradient(90deg, var(--unknown) 0 2px, transparent 2px 4px)'],
};

export function LedgerBar({ ledger, of }: { ledger: Ledger; of: string }) {
  const whole = ledger.duration_ns || 1;
  const parts = ledger.parts.filter((part) => part.ns > 0);
  return (
    <div className="ledger">
      <div className="strip" aria-hidden="true">
        {parts.map((part, index) => (
          <i key={index} style={{ width: `${(part.ns / whole) * 100}%`, background: WORDS[part.kind]?.[1] ?? 'var(--unknown)' }} />
        ))}
      </div>
      <div className={parts.length > 0 ? 'words' : 'words pending'}>
        <span>
          <b>{formatDuration(ledger.duration_ns)}</b>{' '}
          <span className="label" title={of}>
            {of}
          </span>{' '}
          = {parts.length === 0 && <span className="muted">…</span>}
        </span>
        {parts.map((part, index) => (
          <span key={index}>
            <i style={{ background: WORDS[part.kind]?.[1] ?? 'var(--unknown)' }} />
            {formatDuration(part.ns)}{' '}
            <span className="label" title={part.label ?? undefined}>
              {part.label ?? WORDS[part.kind]?.[0] ?? part.kind}
            </span>{' '}
            <span className="muted">{formatShare(part.ns / whole)}</span>
          </span>
        ))}
      </div>
    </div>
  );
}
