import { expect, test } from "vitest";
import type { Candidate, SearchView } from "../src/common/protocol";
import { described, plot, vertical } from "../src/graph/plot";
import { baseline, microseconds, origin, summary, units } from "../src/graph/searchWords";

const candidate = (number: number, seconds: number, estimate_us: number, more: Partial<Candidate> = {}): Candidate => ({
  kernel: "f_fused",
  number,
  seconds,
  words: "grid n/64: 96 blocks; 4 warps, 3 stages",
  block_ops: 5,
  estimate_us,
  measured_us: null,
  chosen: false,
  ...more,
});
const FOUND = [candidate(0, 0.1, 30), candidate(1, 0.4, 22.4, { chosen: true }), candidate(2, 1.2, 23.3)];
const view = (candidates: readonly Candidate[], more: Partial<SearchView> = {}): SearchView => ({
  key: "k",
  function: "f",
  range: null,
  message: "1.8× faster",
  state: "improved",
  topologies: 34,
  seconds: 1.5,
  candidates,
  timing: { source: "estimated", device: "h100", baseline_us: 40.2, optimized_us: 22.4 },
  search: { candidates: 256, complete: true, from_store: false },
  places: [],
  ...more,
});
const SIZE = { width: 300, height: 150 };

test("how the search stands, in a line", () => {
  expect(summary(view(FOUND))).toBe("3 verified candidates, of 34 topologies in 1.5 s");
  expect(summary(view([], { state: "searching", search: null, topologies: 0 }))).toBe("Searching: no verified candidate yet");
  expect(summary(view(FOUND.slice(0, 1), { state: "searching", search: null, topologies: 3, seconds: 0.2 }))).toBe(
    "Searching: 1 verified candidate, of 3 topologies in 0.2 s",
  );
});

test("an estimate is called one, and what was measured is said to be", () => {
  expect(origin(view(FOUND))).toBe("Estimates by the cost model for h100; nothing was measured.");
  expect(origin(view([candidate(0, 1, 20, { measured_us: 21.5 })]))).toBe("Estimates by the cost model for h100, the others measured there.");
  expect(origin(view(FOUND, { search: { candidates: 1, complete: true, from_store: true } }))).toContain("an earlier search.");
  expect(baseline(view(FOUND))).toEqual({ us: 40.2, words: "PyTorch, estimate" });
  const sizes = [{ size: 1, baseline_us: 31.2 }, { size: 64, baseline_us: 52.5 }];
  const ranged = view(FOUND, { timing: { source: "measured", device: "h100", baseline_us: 31.2, optimized_us: 12, sizes } });
  expect(baseline(ranged)).toEqual({ us: 52.5, words: "PyTorch, measured" });
  const two = [...FOUND, candidate(0, 1, 9, { kernel: "f_fused_2" })];
  expect(baseline(view(two))).toBeUndefined();
  expect(units(two).map((unit) => [unit.kernel, unit.candidates.length])).toEqual([["f_fused", 3], ["f_fused_2", 1]]);
});

test("times have as many digits as they are worth", () => {
  expect([3.5117, 22.388, 141.2].map(microseconds)).toEqual(["3.51", "22.4", "141"]);
});

test("the plot: a line that only falls, a mark for each time, and the picture in words", () => {
  const svg = plot([...FOUND, candidate(3, 1.4, 25, { measured_us: 24.1 })], SIZE, 2, { us: 40.2, words: "PyTorch, estimate" });
  const path = /class="best" d="([^"]*)"/.exec(svg)?.[1] ?? "";
  const heights = [...path.matchAll(/(?:V|M[\d.]+ )([\d.]+)/g)].map((match) => Number(match[1]));
  expect(heights).toHaveLength(2); // candidates 2 and 3 are no improvement
  expect(heights[1]).toBeGreaterThan(heights[0] ?? Infinity); // further down is cheaper
  expect(svg.match(/class="estimate/g)).toHaveLength(4);
  expect(svg.match(/class="estimate chosen"/g)).toHaveLength(1);
  expect(svg.match(/class="measured/g)).toHaveLength(1);
  expect(svg).toContain('class="baseline"');
  expect(svg).toMatch(/role="img" aria-label="Cost over the search: 4 candidates, from 30\.0 µs after 0\.1 s to 22\.4 µs/);
  expect(described([])).toBe("no candidates yet");
  for (const [, x] of svg.matchAll(/ c?x[12]?="([-\d.]+)"/g)) expect(Number(x)).toBeLessThanOrEqual(SIZE.width);
});

test("times of one size are on an even scale, others on a logarithmic one", () => {
  const even = vertical(22.4, 30);
  expect(even.ticks).toEqual([20, 25, 30]);
  expect(even.at(25)).toBeCloseTo(0.5);
  const wide = vertical(8, 141);
  expect([wide.ticks[0], wide.ticks.at(-1)]).toEqual([5, 200]);
  expect(wide.at(141)).toBeLessThan(1);
  const one = vertical(22.4, 22.4);
  expect(one.at(22.4)).toBeGreaterThanOrEqual(0);
  expect(one.at(22.4)).toBeLessThanOrEqual(1);
});
