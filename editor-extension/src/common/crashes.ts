const WAITS_MS = [250, 500, 1000, 2000];
const WITHIN_MS = 3 * 60 * 1000;

/** How long to wait before a server that ended is started again, and when to give up. */
export class Crashes {
  private times: number[] = [];

  constructor(private readonly now: () => number = Date.now) {}

  /** Milliseconds to wait; undefined after the fifth end within three minutes: then only a person starts it again. */
  next(): number | undefined {
    const now = this.now();
    this.times = [...this.times.filter((time) => now - time < WITHIN_MS), now];
    return WAITS_MS[this.times.length - 1];
  }

  forgive(): void {
    this.times = [];
  }
}
