/** The cost over the search as an SVG document: one step line of the lowest estimate so far, a mark for each candidate. */

import type { Candidate } from "../common/protocol";
import { microseconds, seconds } from "./searchWords";

const LEFT = 46;
const RIGHT = 10;
const TOP = 20;
const BOTTOM = 24;
const MARK = 3.5;

export interface PlotSize {
  readonly width: number;
  readonly height: number;
}

export interface Baseline {
  readonly us: number;
  readonly words: string;
}

/** ended: seconds until which the line goes on. Colours come from the page's style sheet. */
export function plot(candidates: readonly Candidate[], size: PlotSize, ended: number, baseline?: Baseline): string {
  const times = candidates.flatMap((one) => [one.estimate_us, ...(one.measured_us === null ? [] : [one.measured_us])]);
  if (baseline !== undefined) times.push(baseline.us);
  const until = Math.max(ended, ...candidates.map((one) => one.seconds), 0.1);
  const scale = vertical(Math.min(...times), Math.max(...times));
  const right = size.width - RIGHT;
  const bottom = size.height - BOTTOM;
  const x = (s: number) => round(LEFT + (s / until) * (right - LEFT));
  const y = (us: number) => round(bottom - scale.at(us) * (bottom - TOP));

  const parts = scale.ticks.flatMap((us) => [
    `<line class="grid" x1="${LEFT}" x2="${right}" y1="${y(us)}" y2="${y(us)}"/>`,
    `<text class="tick" x="${LEFT - 6}" y="${y(us) + 3.5}" text-anchor="end">${microsecondsOfTick(us)}</text>`,
  ]);
  parts.push(
    `<text class="tick" x="${LEFT - 6}" y="${TOP - 8}" text-anchor="end">µs</text>`,
    `<line class="axis" x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`,
    `<text class="tick" x="${LEFT}" y="${size.height - 8}">0 s</text>`,
    `<text class="tick" x="${right}" y="${size.height - 8}" text-anchor="end">${seconds(until)} of search</text>`,
  );
  if (baseline !== undefined) {
    const at = y(baseline.us);
    const below = at < TOP + 14;
    parts.push(
      `<line class="baseline" x1="${LEFT}" x2="${right}" y1="${at}" y2="${at}"/>`,
      `<text class="tick" x="${right}" y="${below ? at + 13 : at - 5}" text-anchor="end">${baseline.words}</text>`,
    );
  }
  parts.push(`<path class="best" d="${steps(candidates, until, x, y)}"/>`);
  for (const one of candidates) parts.push(...marks(one, x, y));
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" ` +
    `height="${size.height}" role="img" aria-label="${described(candidates, baseline)}">${parts.join("")}</svg>`
  );
}

/** The picture in words. */
export function described(candidates: readonly Candidate[], baseline?: Baseline): string {
  const [first] = candidates;
  const best = lowest(candidates);
  if (first === undefined || best === undefined) return "no candidates yet";
  const measured = candidates.filter((one) => one.measured_us !== null).length;
  const plain = baseline === undefined ? "" : `; ${baseline.words}: ${microseconds(baseline.us)} µs`;
  return (
    `Cost over the search: ${candidates.length} candidates, from ${microseconds(first.estimate_us)} µs after ` +
    `${seconds(first.seconds)} to ${microseconds(best.estimate_us)} µs after ${seconds(best.seconds)} by estimate, ` +
    `${measured === 0 ? "none" : measured} measured${plain}`
  );
}

function lowest(candidates: readonly Candidate[]): Candidate | undefined {
  return candidates.reduce<Candidate | undefined>(
    (best, one) => (best === undefined || one.estimate_us < best.estimate_us ? one : best),
    undefined,
  );
}

type To = (value: number) => number;

function steps(candidates: readonly Candidate[], until: number, x: To, y: To): string {
  const [first] = candidates;
  if (first === undefined) return "";
  let best = first.estimate_us;
  let path = `M${x(first.seconds)} ${y(best)}`;
  for (const one of candidates) {
    if (one.estimate_us >= best) continue;
    best = one.estimate_us;
    path += `H${x(one.seconds)}V${y(best)}`;
  }
  return `${path}H${x(until)}`;
}

/** Round for an estimate, square for a measured time. */
function marks(one: Candidate, x: To, y: To): string[] {
  const look = one.chosen ? " chosen" : "";
  const about = `data-candidate="${one.kernel} ${one.number}"`;
  const estimate = `candidate ${one.number + 1}: ${microseconds(one.estimate_us)} µs by estimate`;
  const found = [
    `<circle class="estimate${look}" ${about} cx="${x(one.seconds)}" cy="${y(one.estimate_us)}" r="${MARK}"><title>${estimate}</title></circle>`,
  ];
  if (one.measured_us !== null) {
    const words = `candidate ${one.number + 1}: ${microseconds(one.measured_us)} µs measured`;
    const [left, top] = [x(one.seconds) - MARK, y(one.measured_us) - MARK];
    found.push(
      `<rect class="measured${look}" ${about} x="${round(left)}" y="${round(top)}" width="${2 * MARK}" height="${2 * MARK}"><title>${words}</title></rect>`,
    );
  }
  return found;
}

interface Scale {
  readonly ticks: readonly number[];
  /** From 0 at the bottom to 1 at the top. */
  readonly at: (us: number) => number;
}

/** Even where times are near one another, logarithmic where the largest is many times the least. */
export function vertical(least: number, largest: number): Scale {
  if (largest / least > 3) {
    const ticks = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
    const low = ticks.findLast((tick) => tick <= least) ?? least;
    const high = ticks.find((tick) => tick >= largest) ?? largest;
    const shown = ticks.filter((tick) => low <= tick && tick <= high);
    const few = shown.length > 6 ? shown.filter((_, index) => index % 2 === 0 || index === shown.length - 1) : shown;
    return { ticks: few, at: (us) => Math.log(us / low) / Math.log(high / low) };
  }
  const range = Math.max(largest - least, largest * 0.04);
  const rough = range / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((digit) => digit * power >= rough) ?? 10) * power;
  const low = Math.floor(least / step) * step;
  const count = Math.max(1, Math.ceil((Math.max(largest, least + range) - low) / step - 1e-9));
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((low + index * step).toPrecision(6)));
  return { ticks, at: (us) => (us - low) / (count * step) };
}

function microsecondsOfTick(us: number): string {
  return String(Number(us.toPrecision(4)));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
