/** Where remembered lenses go in a text that may have been edited since. Lines would jump if they vanished. */

export interface Remembered<T> {
  readonly line: number;
  /** The text of that line then. */
  readonly text: string;
  readonly lens: T;
  /** It says what was found, and not that something is under way. */
  readonly isResult: boolean;
}

const NEAR = 200;

/** What is remembered after new lenses came: a search that has begun does not make earlier results forgotten. */
export function merge<T>(before: readonly Remembered<T>[], now: readonly Remembered<T>[]): Remembered<T>[] {
  return now.map((one) => {
    if (one.isResult) return one;
    const earlier = before.find((other) => other.isResult && other.text === one.text);
    return earlier === undefined ? one : { ...earlier, line: one.line };
  });
}

/** Each at the nearest line that reads as its line did; those without one are left out. */
export function place<T>(
  remembered: readonly Remembered<T>[],
  lineCount: number,
  lineAt: (line: number) => string,
): Remembered<T>[] {
  return remembered.flatMap((one) => {
    const { line, text } = one;
    for (let distance = 0; distance <= NEAR; distance++) {
      for (const there of distance === 0 ? [line] : [line - distance, line + distance]) {
        if (there >= 0 && there < lineCount && lineAt(there) === text) return [{ ...one, line: there }];
      }
    }
    return [];
  });
}
