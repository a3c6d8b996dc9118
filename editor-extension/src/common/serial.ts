/** Runs one task after the other. A task asked for while one of the same name still waits is that one. */
export class Serial {
  private last: Promise<unknown> = Promise.resolve();
  private readonly waiting = new Map<string, Promise<void>>();

  run(name: string, task: () => Promise<void>): Promise<void> {
    const same = this.waiting.get(name);
    if (same !== undefined) return same;
    const mine = this.last.then(() => {
      this.waiting.delete(name);
      return task();
    });
    this.waiting.set(name, mine);
    this.last = mine.catch(() => undefined); // whoever asked is told; the next one is not concerned
    return mine;
  }
}
