// The source around a line, docked under the graph, where the server knows a repository.
import './source.css';
import { useEffect, useRef } from 'react';
import { readSource } from '../api/profiles';
import { useAnswer } from '../api/useAnswer';
import { CopyButton } from '../app/CopyButton';
import { Failure, Progress } from '../app/Waiting';

export function SourceLines({ file, line, functionName, close }: { file: string; line: number; functionName: string; close: () => void }) {
  const answer = useAnswer(`${file}:${line}`, (signal) => readSource(file, line, signal));
  const box = useRef<HTMLDivElement>(null);
  const here = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Only the box: the page around it stays where the person left it.
    if (box.current && here.current) box.current.scrollTop = here.current.offsetTop - box.current.clientHeight / 2;
  }, [answer.value]);
  const source = answer.value;
  return (
    <section className="source-dock" aria-label={`Source of ${functionName}`}>
      <div className="bar">
        <b className="mono ellipsis" title={file}>
          {source?.file ?? file}:{line}
        </b>
        <span className="muted mono ellipsis grow">{functionName}</span>
        {source?.url && (
          <a href={source.url} target="_blank" rel="noreferrer">
            in the repository
          </a>
        )}
        <CopyButton text={`${file}:${line}`} label="Copy place" />
        <button onClick={close} aria-label="Close the source">
          ×
        </button>
      </div>
      <Progress what="the source" answer={answer} />
      {answer.error && answer.error.status !== 404 && answer.error.kind !== 'missing' && <Failure error={answer.error} what="source code" retry={answer.retry} />}
      {answer.error && (answer.error.status === 404 || answer.error.kind === 'missing') && (
        <div className="notice">
          <h2>The source is not here</h2>
          <p>{answer.error.kind === 'refused' ? answer.error.message : 'The server has not been told where the repository is.'}</p>
          <p>Start it with the folder of the checkout:</p>
          <pre>hotspan serve --source /path/to/repository</pre>
        </div>
      )}
      {source && (
        <div ref={box} className="source" tabIndex={0} role="region" aria-label={`Lines around ${line}`}>
          {source.lines.map((text, index) => {
            const number = source.first_line + index;
            return (
              <div key={number} ref={number === line ? here : undefined} className={number === line ? 'here' : ''} aria-current={number === line ? 'true' : undefined}>
                <span>{number}</span>
                {text}
              </div>
            );
          })}
        </div>
      )}
    </section>
  );
}
