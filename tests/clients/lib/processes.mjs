// Child processes: started, waited for by what they print, and ended in order.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const running = new Set();

// Nothing that a test starts outlives it, however it ends.
process.on('exit', () => {
  for (const child of running) child.kill();
});

export class Child {
  // `grace` is how long the process may take to send what it has left when it is told to stop.
  constructor(command, args, { cwd, env = {}, grace = 30_000 } = {}) {
    this.said = [];
    this.listeners = [];
    this.grace = grace;
    this.name = [command, ...args].join(' ');
    const detached = true; // a group of its own, so that a script and what it started end together
    this.process = spawn(command, args, { cwd, env: { ...process.env, ...env }, detached, stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = new Promise((resolve) => {
      const end = (how) => {
        this.exit = how;
        running.delete(this);
        for (const listener of this.listeners) listener(null);
        resolve();
      };
      this.process.on('error', (error) => (this.hear(String(error)), end(String(error))));
      this.process.on('close', (code, signal) => end(signal ?? code));
    });
    running.add(this);
    for (const stream of [this.process.stdout, this.process.stderr]) {
      createInterface({ input: stream }).on('line', (line) => this.hear(line));
    }
  }

  hear(line) {
    this.said.push(line);
    for (const listener of this.listeners) listener(line);
  }

  // The match of the first line that fits; an error with all that was said if the process ends or is silent too long.
  async line(pattern, patience) {
    const match = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(this.failure(`no line ${pattern} within ${patience / 1000} s`)), patience);
      const look = (line) => {
        const match = line?.match(pattern);
        if (match || line === null) clearTimeout(timer);
        if (match) resolve(match);
        if (line === null) reject(this.failure('it ended'));
      };
      this.said.forEach(look);
      this.listeners.push(look);
      if (this.exit !== undefined) look(null);
    });
    this.listeners = [];
    return match;
  }

  failure(what) {
    return new Error(`${this.name}: ${what}. It said:\n${this.said.slice(-40).join('\n')}`);
  }

  kill(signal = 'SIGKILL') {
    try {
      process.kill(-this.process.pid, signal);
    } catch {
      // It has ended already.
    }
  }

  // Asks it to end, and insists that it does so by itself.
  async stop() {
    this.kill('SIGTERM');
    const timer = setTimeout(() => this.kill(), this.grace);
    await this.ended;
    clearTimeout(timer);
    if (this.exit === 'SIGKILL') throw this.failure(`it did not end within ${this.grace / 1000} s of SIGTERM`);
    return this.exit;
  }
}
