// The bars of a flamebearer, straight from the bytes of an answer: a million of them are four million numbers, which would be
// most of the work as a tree of arrays. Whatever is not written plainly is left to the usual parser.

export interface LevelCells {
  /** The numbers of all levels, one level after the other. */
  cells: Float64Array;
  /** One past the last number of each level. */
  ends: number[];
}

const [QUOTE, COMMA, MINUS, ZERO, OPEN, CLOSE, BRACE, CLOSING_BRACE] = [...'",-0[]{}'].map((letter) => letter.charCodeAt(0)) as [number, number, number, number, number, number, number, number];
const KEY = bytesOf('"levels":[');
const LEVEL = bytesOf('{"values":[');

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function standsAt(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false;
  return true;
}

/** Inside a string a quote has a backslash before it, so only a key can look like this. */
function findKey(bytes: Uint8Array): number {
  let at = bytes.indexOf(QUOTE);
  while (at >= 0 && !standsAt(bytes, at, KEY)) at = bytes.indexOf(QUOTE, at + 1);
  return at;
}

/** Levels as `[1,2]` or `{"values":["1","2"]}`; null for anything else. `at` is behind the first bracket. */
function readLevels(bytes: Uint8Array, at: number): (LevelCells & { end: number }) | null {
  // About five bytes a number; a wrong guess costs a copy.
  let cells = new Float64Array(Math.ceil((bytes.length - at) / 5) + 16);
  const ends: number[] = [];
  let count = 0;
  let i = at;
  while (bytes[i] !== CLOSE) {
    const isObject = bytes[i] === BRACE;
    if (isObject ? !standsAt(bytes, i, LEVEL) : bytes[i] !== OPEN) return null;
    i += isObject ? LEVEL.length : 1;
    while (bytes[i] !== CLOSE) {
      if (bytes[i] === QUOTE) i++;
      const isNegative = bytes[i] === MINUS;
      if (isNegative) i++;
      const first = i;
      let value = 0;
      for (let digit = bytes[i]! - ZERO; digit >= 0 && digit <= 9; digit = bytes[++i]! - ZERO) value = value * 10 + digit;
      if (i === first) return null;
      if (count === cells.length) {
        const grown = new Float64Array(count * 2);
        grown.set(cells);
        cells = grown;
      }
      cells[count++] = isNegative ? -value : value;
      if (bytes[i] === QUOTE) i++;
      if (bytes[i] === COMMA) i++;
      else if (bytes[i] !== CLOSE) return null;
    }
    ends.push(count);
    i++;
    if (isObject && bytes[i++] !== CLOSING_BRACE) return null;
    if (bytes[i] === COMMA) i++;
  }
  return { cells, ends, end: i + 1 };
}

/** The levels of an answer, and the rest of its text with null in their place; null if it must be read in one piece. */
export function cutLevels(bytes: Uint8Array): { levels: LevelCells; rest: string } | null {
  const key = findKey(bytes);
  if (key < 0) return null;
  const levels = readLevels(bytes, key + KEY.length);
  if (!levels) return null;
  const decoder = new TextDecoder();
  return { levels, rest: `${decoder.decode(bytes.subarray(0, key + KEY.length - 1))}null${decoder.decode(bytes.subarray(levels.end))}` };
}

type Cell = number | string;
export type JsonLevel = readonly Cell[] | { values?: readonly Cell[] };

/** The same from levels that have been parsed. */
export function flatten(levels: readonly JsonLevel[]): LevelCells {
  const rows = levels.map((level) => (Array.isArray(level) ? (level as readonly Cell[]) : ((level as { values?: readonly Cell[] }).values ?? [])));
  const cells = new Float64Array(rows.reduce((sum, row) => sum + row.length, 0));
  const ends: number[] = [];
  let count = 0;
  for (const row of rows) {
    for (const cell of row) cells[count++] = Number(cell);
    ends.push(count);
  }
  return { cells, ends };
}
