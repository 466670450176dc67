// The page's side of the flame worker: questions in, promises out.
import type { FlameReply, FlameRequest, LoadedFlame } from './flameWorker';
import type { Timeline } from './timeline';
import type { Transform } from './transforms';
import type { ChildOrder, FlameTree, SideWeights } from './tree';

function startWorker(): Worker {
  return new Worker(new URL('./flameWorker.ts', import.meta.url), { type: 'module' });
}

// One worker waits ready: it starts while the server still works on the answer.
let spare: Worker | null = startWorker();

function takeWorker(): Worker {
  const taken = spare ?? startWorker();
  spare = null;
  return taken;
}

export class FlameEngine {
  private readonly worker = takeWorker();
  private readonly waiting = new Map<number, { resolve: (reply: never) => void; reject: (cause: Error) => void }>();
  private nextId = 1;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<{ id: number; reply?: FlameReply; problem?: string }>) => {
      const asker = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.problem !== undefined) asker?.reject(new Error(data.problem));
      else asker?.resolve(data.reply as never);
    };
  }

  private ask<T extends FlameReply>(request: FlameRequest, transfer: Transferable[] = []): Promise<T> {
    const id = this.nextId++;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (reply: never) => void, reject });
      this.worker.postMessage({ id, request }, transfer);
    });
  }

  /** Bytes are copied, not taken: the answer may be shown by a second view. */
  load(bytes: ArrayBuffer, unit: string): Promise<LoadedFlame> {
    return this.ask({ ask: 'load', bytes, unit });
  }

  arrange(transforms: Transform[], order: ChildOrder, weights: SideWeights): Promise<FlameTree> {
    return this.ask({ ask: 'arrange', transforms, order, weights });
  }

  sandwich(transforms: Transform[], functionName: string, weights: SideWeights): Promise<{ callers: FlameTree; callees: FlameTree }> {
    return this.ask({ ask: 'sandwich', transforms, functionName, weights });
  }

  timeline(bytes: ArrayBuffer): Promise<Timeline | null> {
    return this.ask({ ask: 'timeline', bytes });
  }

  close(): void {
    this.worker.terminate();
    this.waiting.clear();
  }
}
