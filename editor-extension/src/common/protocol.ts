/** What the server says beyond the language server protocol. */

export type EngineState = "exited" | "starting" | "running" | "restarting" | "errored";

export interface EngineView {
  readonly root: string;
  readonly state: EngineState;
  readonly message: string;
  readonly command: string;
  readonly python: string;
  readonly device: string;
  /** What kernels are made for, which need not be the device. */
  readonly target: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly pid: number | null;
  readonly restarts: number;
}

/** The notification `mugraph/status`. */
export interface ServerStatus {
  readonly state: "disabled" | "untrusted" | "errored" | "restarting" | "starting" | "searching" | "idle";
  readonly message: string;
  readonly searching: number;
  readonly regions: Readonly<Record<string, number>>;
  readonly engines: readonly EngineView[];
}

/** The answer to `mugraph/preview`. */
export interface Preview {
  readonly uri: string;
  readonly version: number;
  readonly module_path: string;
  readonly module_text: string;
  readonly before: string;
  readonly after: string;
}

/** The answer to `mugraph/graph`. */
export interface Drawing {
  readonly svg: string;
}

export interface Candidate {
  readonly kernel: string;
  readonly number: number;
  /** Since its search began. */
  readonly seconds: number;
  readonly words: string;
  readonly block_ops: number;
  /** By the cost model: an estimate, always. */
  readonly estimate_us: number;
  readonly measured_us: number | null;
  readonly chosen: boolean;
}

export interface ProtocolRange {
  readonly start: { readonly line: number; readonly character: number };
  readonly end: { readonly line: number; readonly character: number };
}

/** The answer to `mugraph/search`, and what `mugraph/searchChanged` says is another one now. */
export interface SearchView {
  readonly key: string;
  readonly function: string;
  readonly range: ProtocolRange | null;
  readonly message: string;
  readonly state: string;
  readonly topologies: number;
  readonly seconds: number;
  readonly candidates: readonly Candidate[];
  readonly timing: {
    readonly source: "measured" | "estimated";
    readonly device: string;
    readonly baseline_us: number | null;
    readonly optimized_us: number | null;
    /** Of a size in a range, the smallest first; candidates are at the largest. */
    readonly sizes?: readonly { readonly size: number; readonly baseline_us: number | null }[];
  } | null;
  readonly search: { readonly candidates: number; readonly complete: boolean; readonly from_store: boolean } | null;
  /** Of the statements that the drawing's boxes name by number. */
  readonly places: readonly (ProtocolRange | null)[];
}

/** Of our diagnostics: names the region. */
export interface RegionData {
  readonly uri: string;
  readonly key: string;
  readonly id: string;
}

/** Commands of this extension that the server's links and actions may name. */
export const CLIENT_COMMANDS = ["mugraph.showGraph", "mugraph.showKernel", "mugraph.showChange"] as const;
