// The service graph in columns: callers left, callees right. Small graphs, so plain passes are enough.
import type { GraphEdge } from '../../api/services';

export interface PlacedService {
  service: string;
  column: number;
  row: number;
}

export interface GraphLayout {
  places: Map<string, PlacedService>;
  columns: number;
  rows: number;
}

export function layoutGraph(edges: readonly GraphEdge[], services: readonly string[]): GraphLayout {
  const names = [...new Set([...edges.flatMap((edge) => [edge.client, edge.server]), ...services])];
  const column = new Map(names.map((name) => [name, 0]));
  // Longest path from the entry services; rounds are bounded, so a cycle cannot push forever.
  for (let round = 0; round < names.length; round++) {
    let moved = false;
    for (const { client, server } of edges) {
      const wanted = column.get(client)! + 1;
      if (client !== server && wanted > column.get(server)! && wanted < names.length) {
        column.set(server, wanted);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const used = [...new Set(column.values())].sort((a, b) => a - b);
  const places = new Map<string, PlacedService>();
  let rows = 0;
  used.forEach((original, index) => {
    const inColumn = names.filter((name) => column.get(name) === original);
    // Near their callers, so that edges cross less.
    const pull = (name: string) => {
      const callers = edges.filter((edge) => edge.server === name && places.has(edge.client)).map((edge) => places.get(edge.client)!.row);
      return callers.length > 0 ? callers.reduce((sum, row) => sum + row, 0) / callers.length : Infinity;
    };
    inColumn.sort((a, b) => pull(a) - pull(b) || (a < b ? -1 : 1));
    inColumn.forEach((service, row) => places.set(service, { service, column: index, row }));
    rows = Math.max(rows, inColumn.length);
  });
  return { places, columns: used.length, rows };
}
