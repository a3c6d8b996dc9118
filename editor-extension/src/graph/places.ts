/** Places of the source that the drawing's boxes name by number; as the language server counts them. */

export interface Place {
  readonly line: number;
  readonly character: number;
}

export interface Span {
  readonly start: Place;
  readonly end: Place;
}

/** The numbers of the smallest places around the cursor: in `f(g(x))` the cursor at `g` is not about `f`. */
export function innermost(cursor: Place, spans: readonly (Span | null)[]): number[] {
  const around = spans.flatMap((span, number) => (span !== null && contains(span, cursor) ? [{ span, number }] : []));
  const inner = around.filter(
    (one) => !around.some((other) => !same(one.span, other.span) && within(other.span, one.span)),
  );
  return inner.map(({ number }) => number);
}

function contains(span: Span, place: Place): boolean {
  return compare(span.start, place) <= 0 && compare(place, span.end) <= 0;
}

function within(inner: Span, outer: Span): boolean {
  return compare(outer.start, inner.start) <= 0 && compare(inner.end, outer.end) <= 0;
}

function same(one: Span, other: Span): boolean {
  return compare(one.start, other.start) === 0 && compare(one.end, other.end) === 0;
}

function compare(one: Place, other: Place): number {
  return one.line - other.line || one.character - other.character;
}
