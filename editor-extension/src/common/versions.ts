/** Whether texts were edited while something was being worked out for them. */

export interface Versioned {
  readonly uri: string;
  readonly version: number;
}

export function versionsOf(documents: readonly Versioned[]): ReadonlyMap<string, number> {
  return new Map(documents.map((document) => [document.uri, document.version]));
}

/** Those of `edited` that have another version than before, or were closed. Files that were not open do not count. */
export function changedSince(
  before: ReadonlyMap<string, number>,
  now: ReadonlyMap<string, number>,
  edited: readonly string[],
): string[] {
  return edited.filter((uri) => before.has(uri) && before.get(uri) !== now.get(uri));
}
