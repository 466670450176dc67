// What the parts of a bar mean.
const PARTS: readonly [kind: string, label: string][] = [
  ['cpu', 'on CPU'],
  ['wait', 'waiting'],
  ['child', 'in child spans'],
  ['unexplained', 'unexplained'],
];

export function WaterfallLegend({ hasProfiles, hasEvents }: { hasProfiles: boolean; hasEvents: boolean }) {
  return (
    <div className="wf-legend">
      {(hasProfiles ? PARTS : [['own', 'own time'], ['child', 'in child spans']]).map(([kind, label]) => (
        <span key={kind}>
          <i>
            <span className={`wf-part ${kind}`} />
          </i>
          {label}
        </span>
      ))}
      <span>
        <i>
          <span className="wf-critical" />
        </i>
        critical path
      </span>
      {hasProfiles && <span>5∿ five samples of any type</span>}
      {hasEvents && <span>◆ event</span>}
    </div>
  );
}
