/** Where remembered lenses go in a text that may have been edited since. Lines would jump if they vanished. */

export interface Remembered<T> {
  readonly line: number;
  /** The text of that line then. */
  readonly text: string;
  readonly lens: T;
}

const NEAR = 200;

/** Each at the nearest line that reads as its line did; those without one are left out. */
export function place<T>(
  remembered: readonly Remembered<T>[],
  lineCount: number,
  lineAt: (line: number) => string,
): { line: number; lens: T }[] {
  return remembered.flatMap(({ line, text, lens }) => {
    for (let distance = 0; distance <= NEAR; distance++) {
      for (const there of distance === 0 ? [line] : [line - distance, line + distance]) {
        if (there >= 0 && there < lineCount && lineAt(there) === text) return [{ line: there, lens }];
      }
    }
    return [];
  });
}
