// Flame graphs as the server packs them: crates/hotspan-formats/src/packed_flame.rs tells the format.

const widthOf = (column) => [1, 2, 4].find((width) => column.every((value) => value >= 0 && value < 256 ** width)) ?? 8;
const ARRAYS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array };

export function packFlame(told, { self, name, children }) {
  const packed = { nodes: self.length, self: widthOf(self), name: widthOf(name), children: widthOf(children) };
  const text = Buffer.from(JSON.stringify({ ...told, packed }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  const parts = [Buffer.concat([Buffer.from('HOTFLAME'), length, text]), ...[[self, packed.self], [name, packed.name], [children, packed.children]].map(([column, width]) => Buffer.from(new ARRAYS[width](column).buffer))];
  const whole = Buffer.concat(parts.map((part) => Buffer.concat([part, Buffer.alloc((8 - (part.length % 8)) % 8)])));
  return whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.length);
}
