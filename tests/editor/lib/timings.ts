import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { out } from "./paths.ts";

const FILE = join(out, "timings.json");

/** Printed, and kept beside the screenshots with those of the other files of tests. */
export function timed(what: string, ms: number): number {
  const found = (existsSync(FILE) ? JSON.parse(readFileSync(FILE, "utf8")) : {}) as Record<string, number>;
  found[what] = Math.round(ms);
  console.log(`# ${what}: ${String(Math.round(ms))} ms`);
  writeFileSync(FILE, `${JSON.stringify(found, null, 2)}\n`);
  return ms;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
