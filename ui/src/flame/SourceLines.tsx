// The source around a line, where the server knows a repository.
import { useEffect, useRef } from 'react';
import { readSource } from '../api/profiles';
import { useAnswer } from '../api/useAnswer';
import { Shown } from '../app/Waiting';

export function SourceLines({ file, line, close }: { file: string; line: number; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const answer = useAnswer(`${file}:${line}`, (signal) => readSource(file, line, signal));
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label={`Source of ${file}`} onClose={close}>
      <div className="row">
        <h1 className="grow mono">
          {file}:{line}
        </h1>
        <button onClick={close}>Close</button>
      </div>
      <Shown answer={answer} what="source code">
        {(source) => (
          <div className="source" tabIndex={0}>
            {source.lines.map((text, index) => (
              <div key={index} className={source.first_line + index === line ? 'here' : ''}>
                <span>{source.first_line + index}</span>
                {text}
              </div>
            ))}
          </div>
        )}
      </Shown>
      {answer.error?.kind === 'missing' && <p className="muted">Source is shown once the server is told where the repository is.</p>}
    </dialog>
  );
}
