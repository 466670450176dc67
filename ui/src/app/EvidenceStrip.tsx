// On every answer: what stands behind it. A click on a number says where it comes from.
import { useState } from 'react';
import type { Exactness } from '../api/evidence';
import { useIsWaiting } from '../api/inFlight';
import { evidenceFacts } from './evidenceFacts';

export function EvidenceStrip({ evidence, extra }: { evidence: Exactness | null; extra?: string }) {
  const [open, setOpen] = useState<string | null>(null);
  const isWaiting = useIsWaiting();
  const facts = evidence ? evidenceFacts(evidence) : [];
  const shown = facts.find((fact) => fact.id === open);
  return (
    <footer className="evidence" aria-label="Evidence">
      {facts.map((fact) => (
        <button key={fact.id} className={fact.warned ? 'warned' : ''} aria-expanded={open === fact.id} onClick={() => setOpen(open === fact.id ? null : fact.id)}>
          <b>{fact.text}</b> {fact.label}
        </button>
      ))}
      {facts.length === 0 && <span className="muted">{extra ?? (isWaiting ? 'reading' : 'No evidence came with this answer.')}</span>}
      {facts.length > 0 && extra && <span className="muted">{extra}</span>}
      {shown && (
        <div className="menu origin" role="status">
          {shown.origin}
        </div>
      )}
    </footer>
  );
}
