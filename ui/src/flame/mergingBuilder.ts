// Builds a tree out of stacks: equal frames under equal parents become one node.
import type { FrameFacts, LooseNodes } from './tree';

/** A power of two, so that a mask can wrap around, and at most half full, so that a probe always meets a free slot. */
function slotsFor(capacity: number): number {
  return 2 ** Math.ceil(Math.log2(capacity * 2));
}

export class MergingBuilder {
  count = 1;
  private parent: Int32Array;
  private name: Uint32Array;
  private selfA: Float64Array;
  private selfB: Float64Array | null;
  /** Open addressing over (parent, name); holds node + 1, so that zero means free. */
  private slots: Int32Array;

  constructor(rootName: number, isDiff: boolean, expected = 1024) {
    const capacity = Math.max(16, expected);
    this.parent = new Int32Array(capacity);
    this.name = new Uint32Array(capacity);
    this.selfA = new Float64Array(capacity);
    this.selfB = isDiff ? new Float64Array(capacity) : null;
    this.slots = new Int32Array(slotsFor(capacity));
    this.parent[0] = -1;
    this.name[0] = rootName;
  }

  private slotOf(parent: number, name: number): number {
    const mask = this.slots.length - 1;
    let slot = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(name, 0x85ebca77)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const held = this.slots[slot]! - 1;
      if (held < 0 || (this.parent[held] === parent && this.name[held] === name)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  child(parent: number, name: number): number {
    const slot = this.slotOf(parent, name);
    const held = this.slots[slot]! - 1;
    if (held >= 0) return held;
    if (this.count === this.parent.length) {
      this.grow();
      return this.child(parent, name);
    }
    const node = this.count++;
    this.parent[node] = parent;
    this.name[node] = name;
    this.slots[slot] = node + 1;
    return node;
  }

  /** A node of its own, never merged: time-ordered trees repeat frames. */
  append(parent: number, name: number): number {
    if (this.count === this.parent.length) this.grow();
    const node = this.count++;
    this.parent[node] = parent;
    this.name[node] = name;
    return node;
  }

  nameOf(node: number): number {
    return this.name[node]!;
  }

  addSelf(node: number, a: number, b: number): void {
    this.selfA[node]! += a;
    if (this.selfB) this.selfB[node]! += b;
  }

  private grow(): void {
    const capacity = this.parent.length * 2;
    const larger = <T extends Int32Array | Uint32Array | Float64Array>(old: T, fresh: T): T => {
      fresh.set(old);
      return fresh;
    };
    this.parent = larger(this.parent, new Int32Array(capacity));
    this.name = larger(this.name, new Uint32Array(capacity));
    this.selfA = larger(this.selfA, new Float64Array(capacity));
    if (this.selfB) this.selfB = larger(this.selfB, new Float64Array(capacity));
    this.slots = new Int32Array(slotsFor(capacity));
    for (let node = 1; node < this.count; node++) this.slots[this.slotOf(this.parent[node]!, this.name[node]!)] = node + 1;
  }

  finish(names: readonly string[], facts: readonly FrameFacts[] | null, unit: string, ticks?: { a: number; b: number }): LooseNodes {
    return {
      count: this.count,
      names,
      facts,
      name: this.name.slice(0, this.count),
      parent: this.parent.slice(0, this.count),
      selfA: this.selfA.slice(0, this.count),
      selfB: this.selfB ? this.selfB.slice(0, this.count) : null,
      ticksA: ticks?.a,
      ticksB: ticks?.b,
      unit,
    };
  }
}
