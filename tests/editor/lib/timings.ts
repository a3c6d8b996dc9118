import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { out } from "./paths.ts";

const found: Record<string, number> = {};

/** Printed, and kept beside the screenshots. */
export function timed(what: string, ms: number): number {
  found[what] = Math.round(ms);
  console.log(`# ${what}: ${String(Math.round(ms))} ms`);
  writeFileSync(join(out, "timings.json"), `${JSON.stringify(found, null, 2)}\n`);
  return ms;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
