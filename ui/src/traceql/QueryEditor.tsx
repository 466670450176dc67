// The question bar: a plain text area with a coloured copy behind it, completion, and the fault marked at its character.
import './editor.css';
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { ApiError } from '../api/request';
import { readTags, readTagValues } from '../api/traces';
import { useAnswer } from '../api/useAnswer';
import type { ResolvedRange } from '../location/timeRange';
import { completions, wantedAt } from './completion';
import { hintAt } from './hint';
import { findSlip, tokenize } from './tokens';

interface Props {
  value: string;
  onRun: (query: string) => void;
  range: ResolvedRange;
  error: ApiError | null;
}

export function QueryEditor({ value, onRun, range, error }: Props) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [draft, setDraft] = useState(value);
  const [caret, setCaret] = useState(0);
  const [focused, setFocused] = useState(false);
  const [dismissed, setDismissed] = useState(false);
  const [chosen, setChosen] = useState(0);
  // Where the caret goes once what was taken from the list is in the text.
  const caretBehind = useRef<number | null>(null);
  useEffect(() => setDraft(value), [value]);
  useLayoutEffect(() => {
    // Grow with the text: a long question must be visible as a whole.
    const element = area.current!;
    element.style.height = '0';
    element.style.height = `${element.scrollHeight + 2}px`;
    // Before another key is read: later, it would go back behind what was typed meanwhile.
    const at = caretBehind.current;
    if (at !== null) {
      caretBehind.current = null;
      element.setSelectionRange(at, at);
      setCaret(at);
    }
  }, [draft]);
  const wanted = useMemo(() => wantedAt(draft, caret), [draft, caret]);
  const tags = useAnswer(focused ? `tags|${range.fromMs}` : null, (signal) => readTags(range, signal));
  const attribute = wanted.what === 'value' ? wanted.attribute : null;
  const values = useAnswer(focused && attribute ? `values|${attribute}|${range.fromMs}` : null, (signal) => readTagValues(attribute!, range, signal));
  const offered = focused && !dismissed ? completions(wanted, tags.value ?? [], attribute ? (values.value ?? []) : []) : [];
  const slip = useMemo(() => findSlip(draft), [draft]);
  // The server's position holds only for the text it was asked.
  const fault = draft === value && error?.position !== null && error?.position !== undefined ? { at: error.position, message: error.message } : slip && !focused ? slip : null;
  const hint = useMemo(() => hintAt(draft, tags.value ?? []), [draft, tags.value]);
  const accept = (text: string) => {
    if (wanted.what === 'nothing') return;
    const needsSpace = wanted.what === 'attribute' && !text.endsWith('.') ? ' ' : '';
    const next = draft.slice(0, wanted.from) + text + needsSpace + draft.slice(caret);
    const at = wanted.from + text.length + needsSpace.length;
    // What was typed whole already changes nothing, and the caret is behind it.
    caretBehind.current = next === draft ? null : at;
    setDraft(next);
    setChosen(0);
  };
  return (
    <form
      className="row grow tql-form"
      onSubmit={(event) => {
        event.preventDefault();
        onRun(draft.trim());
      }}
    >
      <div className="tql">
        <textarea
          ref={area}
          data-question
          role="combobox"
          aria-label="TraceQL question"
          aria-expanded={offered.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={offered.length > 0 ? `${id}-${chosen}` : undefined}
          aria-invalid={fault !== null}
          aria-autocomplete="list"
          spellCheck={false}
          rows={1}
          placeholder='{ resource.service.name = "shop" && duration > 500ms }'
          value={draft}
          onChange={(event) => {
            setDraft(event.target.value);
            setCaret(event.target.selectionStart);
            setChosen(0);
            setDismissed(false);
          }}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
          onFocus={() => {
            setFocused(true);
            // Nothing pops up until a key is typed: focus alone is not a question.
            setDismissed(true);
          }}
          onBlur={() => setFocused(false)}
          onKeyDown={(event) => {
            if (offered.length > 0) {
              if (event.key === 'ArrowDown') setChosen((chosen + 1) % offered.length);
              else if (event.key === 'ArrowUp') setChosen((chosen - 1 + offered.length) % offered.length);
              else if (event.key === 'Tab' || (event.key === 'Enter' && !event.ctrlKey && chosen > 0)) accept(offered[chosen]!);
              else if (event.key === 'Escape') setDismissed(true);
              else if (event.key === 'Enter') onRun(draft.trim());
              else return;
              event.preventDefault();
              return;
            }
            if (event.key === 'Enter' && !event.shiftKey) {
              event.preventDefault();
              onRun(draft.trim());
            } else if (event.key === 'Escape') event.currentTarget.blur();
            else if (event.key === ' ' && event.ctrlKey) setDismissed(false);
          }}
        />
        <pre aria-hidden="true">
          {tokenize(draft).map((token) => (
            <span key={token.from} className={`${token.kind}${fault && fault.at >= token.from && fault.at < token.to ? ' fault' : ''}`}>
              {token.text}
            </span>
          ))}
          {fault && fault.at >= draft.length && <span className="fault"> </span>}
        </pre>
        {offered.length > 0 && (
          <ul className="tql-list" id={`${id}-list`} role="listbox" aria-label="Completions">
            {offered.map((entry, index) => (
              <li
                key={entry}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === chosen}
                onPointerDown={(event) => {
                  event.preventDefault();
                  accept(entry);
                }}
              >
                {entry}
              </li>
            ))}
          </ul>
        )}
        {fault && (
          <div className="tql-fault" role="alert">
            at character {fault.at + 1}: {fault.message}
            {error?.suggestion && draft === value ? ` Did you mean ${error.suggestion}?` : ''}
          </div>
        )}
        {hint && !fault && (
          <div className="tql-hint" role="status">
            {hint.message}
          </div>
        )}
      </div>
      <button className="primary">Run</button>
    </form>
  );
}
