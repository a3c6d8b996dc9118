/** Where an expression of the traced program stands in the text, and which expression stands at a place. */

export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * "self.linear.weight" is read where `self.linear` is called: the longest beginning of the expression that the text
 * has. A bare `self` says nothing.
 */
export function placesOf(expression: string, text: string): Span[] {
  const parts = expression.split(".");
  const least = parts[0] === "self" ? 2 : 1;
  for (let count = parts.length; count >= least; count--) {
    const wanted = parts.slice(0, count).join(".");
    const found = occurrences(wanted, text);
    if (found.length > 0) return found;
  }
  return [];
}

/** Of these expressions those that stand at this place. */
export function expressionsAt(offset: number, expressions: readonly string[], text: string): string[] {
  return expressions.filter((expression) =>
    placesOf(expression, text).some(({ start, end }) => start <= offset && offset <= end),
  );
}

function occurrences(wanted: string, text: string): Span[] {
  const found: Span[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
    const before = text[at - 1] ?? "";
    const after = text[at + wanted.length] ?? "";
    if (!/[\w.]/.test(before) && !/\w/.test(after)) found.push({ start: at, end: at + wanted.length });
  }
  return found;
}
