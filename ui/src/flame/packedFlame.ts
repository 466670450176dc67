// A flame graph as columns of numbers, which the server writes for large ones (its `packed_flame.rs` tells the format): nothing
// is parsed but the names, and the columns are looked at where they lie.
import { type RawAnswer, unitOf } from './flamebearer';
import type { FrameFacts, LooseNodes } from './tree';

const MAGIC = 'HOTFLAME';

interface Told extends RawAnswer {
  names: string[];
  frames: FrameFacts[];
  packed: { nodes: number; self: number; name: number; children: number };
}

export function isPacked(bytes: ArrayBuffer): boolean {
  return bytes.byteLength > 12 && [...MAGIC].every((letter, at) => new Uint8Array(bytes, at, 1)[0] === letter.charCodeAt(0));
}

const padded = (length: number) => Math.ceil(length / 8) * 8;

function columnAt(bytes: ArrayBuffer, at: number, width: number, count: number): Uint8Array | Uint16Array | Uint32Array | Float64Array {
  switch (width) {
    case 1:
      return new Uint8Array(bytes, at, count);
    case 2:
      return new Uint16Array(bytes, at, count);
    case 4:
      return new Uint32Array(bytes, at, count);
    default:
      return new Float64Array(bytes, at, count);
  }
}

/** Nodes come level by level: the children of each follow those of the one before. */
function parentsOf(children: ArrayLike<number>, count: number): Int32Array {
  const parent = new Int32Array(count);
  parent[0] = -1;
  let next = 1;
  for (let node = 0; node < count; node++) {
    const end = next + children[node]!;
    if (end > count || (node >= next && node > 0)) throw new Error('its nodes are no tree');
    while (next < end) parent[next++] = node;
  }
  if (next !== count && count > 0) throw new Error('its nodes are no tree');
  return parent;
}

export function decodePacked(bytes: ArrayBuffer, fallbackUnit: string): { answer: RawAnswer; nodes: LooseNodes } {
  const length = new DataView(bytes).getUint32(8, true);
  const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 12, length))) as Told;
  const { nodes: count, self: selfBytes, name: nameBytes, children: childrenBytes } = answer.packed;
  const selfAt = padded(12 + length);
  const nameAt = selfAt + padded(count * selfBytes);
  const childrenAt = nameAt + padded(count * nameBytes);
  const self = columnAt(bytes, selfAt, selfBytes, count);
  const name = columnAt(bytes, nameAt, nameBytes, count);
  const parent = parentsOf(columnAt(bytes, childrenAt, childrenBytes, count), count);
  const nodes: LooseNodes = {
    count,
    names: answer.names,
    facts: answer.frames,
    name: new Uint32Array(name),
    parent,
    selfA: new Float64Array(self),
    selfB: null,
    unit: unitOf(answer, fallbackUnit),
  };
  return { answer, nodes };
}
