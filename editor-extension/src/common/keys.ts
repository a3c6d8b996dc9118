/** Regions as links and actions name them: one key, a list of keys, or none. */
export function keysOf(given: unknown): string[] {
  if (typeof given === "string") return [given];
  return Array.isArray(given) ? given.filter((one): one is string => typeof one === "string") : [];
}
