/** What the server says beyond the language server protocol. */

export type EngineState = "exited" | "starting" | "running" | "restarting" | "errored";

export interface EngineView {
  readonly root: string;
  readonly state: EngineState;
  readonly message: string;
  readonly command: string;
  readonly python: string;
  readonly device: string;
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

/** Of our diagnostics: names the region. */
export interface RegionData {
  readonly uri: string;
  readonly key: string;
  readonly id: string;
}

/** Commands of this extension that the server's links and actions may name. */
export const CLIENT_COMMANDS = ["mugraph.showGraph", "mugraph.showKernel", "mugraph.showChange"] as const;
