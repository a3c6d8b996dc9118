/** What the candidates' panel says: unrounded numbers are for nobody. */

import type { Candidate, SearchView } from "../common/protocol";

export interface Unit {
  readonly kernel: string;
  readonly candidates: readonly Candidate[];
}

/** The candidates of each kernel, in the order their searches ran. */
export function units(candidates: readonly Candidate[]): Unit[] {
  const kernels = [...new Set(candidates.map(({ kernel }) => kernel))];
  return kernels.map((kernel) => ({ kernel, candidates: candidates.filter((one) => one.kernel === kernel) }));
}

/** Three digits, as many as either kind of number is worth. */
export function microseconds(us: number): string {
  if (us >= 100) return us.toFixed(0);
  return us >= 10 ? us.toFixed(1) : us.toFixed(2);
}

export function seconds(s: number): string {
  return `${s >= 10 ? s.toFixed(0) : s.toFixed(1)} s`;
}

/** One line above the candidates. */
export function summary(view: SearchView): string {
  const count = view.candidates.length;
  const found = count === 0 ? "no verified candidate yet" : `${count} verified candidate${count === 1 ? "" : "s"}`;
  const searched = view.topologies === 0 ? "" : `, of ${view.topologies} topologies in ${seconds(view.seconds)}`;
  if (view.search === null) return `${view.state === "queued" ? "Waiting" : "Searching"}: ${found}${searched}`;
  return `${count === 0 ? "No verified candidate" : found}${searched}`;
}

/** Where the numbers come from. */
export function origin(view: SearchView): string {
  const device = view.timing === null ? "" : ` for ${view.timing.device}`;
  const measured = view.candidates.some((one) => one.measured_us !== null);
  const kept = view.search?.from_store === true ? " Kept from an earlier search." : "";
  return measured
    ? `Estimates by the cost model${device}, the others measured there.${kept}`
    : `Estimates by the cost model${device}; nothing was measured.${kept}`;
}

/** Times of PyTorch itself that belong into the plot: where one kernel is the whole region. */
export function baseline(view: SearchView): { us: number; words: string } | undefined {
  const us = (view.timing?.sizes?.at(-1) ?? view.timing)?.baseline_us ?? null;
  if (us === null || view.timing === null || units(view.candidates).length !== 1) return undefined;
  return { us, words: `PyTorch, ${view.timing.source === "measured" ? "measured" : "estimate"}` };
}
