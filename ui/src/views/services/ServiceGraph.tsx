import { useMemo } from 'react';
import { type GraphEdge, readServiceGraph } from '../../api/services';
import { useAnswer } from '../../api/useAnswer';
import { Empty, Shown } from '../../app/Waiting';
import { formatDuration, formatRate, formatShare, type RateUnit, rateUnitFor } from '../../format/units';
import type { ResolvedRange } from '../../location/timeRange';
import { hrefOf } from '../../location/urlState';
import { serviceColours } from '../../theme/evenPalette';
import { useTheme } from '../../theme/theme';
import { layoutGraph } from './graphLayout';

const BOX = { width: 176, height: 44, gapX: 192, gapY: 26 };
const LABEL_HEIGHT = 14;

export function ServiceGraph({ range, services }: { range: ResolvedRange; services: readonly string[] }) {
  const theme = useTheme();
  const answer = useAnswer(`graph|${range.fromMs}|${range.toMs}`, (signal) => readServiceGraph(range, signal));
  const edges = answer.value;
  const layout = useMemo(() => layoutGraph(edges ?? [], services), [edges, services]);
  const colours = useMemo(() => serviceColours([...layout.places.keys()], theme), [layout, theme]);
  const rateUnit = rateUnitFor((edges ?? []).map((edge) => edge.rate));
  const x = (column: number) => 10 + column * (BOX.width + BOX.gapX);
  const y = (row: number) => 10 + row * (BOX.height + BOX.gapY);
  const curve = (edge: GraphEdge) => {
    const from = layout.places.get(edge.client)!;
    const to = layout.places.get(edge.server)!;
    const [x1, y1, x2, y2] = [x(from.column) + BOX.width, y(from.row) + BOX.height / 2, x(to.column), y(to.row) + BOX.height / 2];
    const bend = Math.max(40, Math.abs(x2 - x1) / 2);
    return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  };
  return (
    <Shown answer={answer} what="the service graph">
      {(found) =>
        found.length === 0 ? (
          <Empty title="No call between services in this time range" />
        ) : (
          <div className="graph" tabIndex={0} role="region" aria-label="Service graph">
            <svg width={x(layout.columns)} height={y(layout.rows) + 10}>
              {found.map((edge) => (
                <path key={keyOf(edge)} d={curve(edge)} fill="none" stroke={edge.errors > 0.01 ? 'var(--error)' : 'var(--line-strong)'} strokeWidth={Math.min(5, 1 + Math.log10(1 + edge.rate))} strokeDasharray={edge.errors > 0.01 ? '6 3' : undefined}>
                  <title>{`${edge.client} → ${edge.server}: ${formatRate(edge.rate, rateUnit)}, ${formatShare(edge.errors)} failed${edge.p95_ns ? `, P95 ${formatDuration(edge.p95_ns)}` : ''}`}</title>
                </path>
              ))}
              {found.map((edge) => {
                // At its own end, one under the other where several callers meet: no two labels share a place.
                const nth = found.filter((other) => other.server === edge.server).indexOf(edge);
                const to = layout.places.get(edge.server)!;
                return (
                  <text key={keyOf(edge)} className="edge-label" x={x(to.column) - 6} y={y(to.row) + BOX.height / 2 - 5 + (nth > 0 ? 5 + nth * LABEL_HEIGHT : 0)} textAnchor="end">
                    {formatRate(edge.rate, rateUnit)}
                    {edge.p95_ns ? ` · P95 ${formatDuration(edge.p95_ns)}` : ''}
                    {edge.errors > 0.005 && <tspan className="failed"> ✕ {formatShare(edge.errors)}</tspan>}
                  </text>
                );
              })}
              {[...layout.places.values()].map((place) => (
                <a key={place.service} href={hrefOf(['traces'], { service: place.service })}>
                  <rect x={x(place.column)} y={y(place.row)} width={BOX.width} height={BOX.height} rx={4} fill="var(--panel)" stroke="var(--line-strong)" />
                  <rect x={x(place.column)} y={y(place.row)} width={4} height={BOX.height} fill={colours.get(place.service)} />
                  <text x={x(place.column) + 12} y={y(place.row) + 17}>
                    {place.service.length > 20 ? `${place.service.slice(0, 19)}…` : place.service}
                  </text>
                  <text className="edge-label" x={x(place.column) + 12} y={y(place.row) + 32}>
                    {callsInto(found, place.service, rateUnit)}
                  </text>
                </a>
              ))}
            </svg>
          </div>
        )
      }
    </Shown>
  );
}

const keyOf = (edge: GraphEdge) => `${edge.client}→${edge.server}`;

/** What arrives at a service over all its callers. */
function callsInto(edges: readonly GraphEdge[], service: string, unit: RateUnit): string {
  const incoming = edges.filter((edge) => edge.server === service);
  if (incoming.length === 0) return 'entry';
  const rate = incoming.reduce((sum, edge) => sum + edge.rate, 0);
  const failed = incoming.reduce((sum, edge) => sum + edge.rate * edge.errors, 0) / (rate || 1);
  return `${formatRate(rate, unit)}${failed > 0.005 ? ` · ${formatShare(failed)} failed` : ''}`;
}
