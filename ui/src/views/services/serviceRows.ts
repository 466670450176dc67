// Which rows the table of services has, and in which order.
import type { OperationFacts, ServiceFacts } from '../../api/services';
import type { SortOrder } from '../../app/SortHead';

export type Column = 'name' | 'rate' | 'errors' | 'p50_ns' | 'p95_ns' | 'p99_ns' | 'cpu';

export type Order = SortOrder<Column>;

export interface Row {
  service: ServiceFacts;
  /** Null for the service itself. */
  operation: OperationFacts | null;
}

type Facts = OperationFacts | ServiceFacts;

const nameOf = (facts: Facts) => ('service' in facts ? facts.service : facts.operation);
const valueOf = (facts: Facts, column: Exclude<Column, 'name'>) => (column === 'cpu' ? (facts.cpu_ns_per_request ?? -1) : facts[column]);

function comparing({ column, descending }: Order): (a: Facts, b: Facts) => number {
  const direction = descending ? -1 : 1;
  return (a, b) => direction * (column === 'name' ? (nameOf(a) < nameOf(b) ? -1 : 1) : valueOf(a, column) - valueOf(b, column));
}

/** A handful of operations is read at a glance: no need to ask for them one by one. */
const AT_A_GLANCE = 28;

/** Services whose operations are shown: those named in the URL, or all of them while they are few. */
export function unfolded(services: readonly ServiceFacts[], named: string): ReadonlySet<string> {
  if (named) return new Set(named.split(','));
  const rows = services.reduce((sum, service) => sum + 1 + service.operations.length, 0);
  return new Set(rows <= AT_A_GLANCE ? services.map((service) => service.service) : []);
}

/** Services that are called so or have operations called so; a search shows the operations too. */
export function serviceRows(services: readonly ServiceFacts[], open: ReadonlySet<string>, find: string, order: Order): Row[] {
  const compare = comparing(order);
  const wanted = find.toLowerCase();
  const has = (name: string) => name.toLowerCase().includes(wanted);
  return services
    .filter((service) => !wanted || has(service.service) || service.operations.some((operation) => has(operation.operation)))
    .sort(compare)
    .flatMap((service) => {
      const operations = wanted && !has(service.service) ? service.operations.filter((operation) => has(operation.operation)) : service.operations;
      const shown = open.has(service.service) || wanted ? [...operations].sort(compare) : [];
      return [{ service, operation: null }, ...shown.map((operation) => ({ service, operation }))];
    });
}
