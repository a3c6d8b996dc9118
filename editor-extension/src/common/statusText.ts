import type { ServerStatus } from "./protocol";

/** Where the server is in its life; what the server says of itself comes on top once it runs. */
export type Phase =
  | { readonly kind: "off" }
  | { readonly kind: "untrusted" }
  | { readonly kind: "no-python" }
  | { readonly kind: "missing"; readonly python: string; readonly chosenBy: string }
  | { readonly kind: "unfit"; readonly python: string; readonly chosenBy: string; readonly why: string }
  | { readonly kind: "starting"; readonly python: string }
  | { readonly kind: "running"; readonly python: string; readonly version: string }
  | { readonly kind: "restarting"; readonly python: string; readonly why: string }
  | { readonly kind: "failed"; readonly python: string; readonly why: string };

export interface StatusText {
  readonly icon: string;
  readonly text: string;
  /** One sentence. */
  readonly detail: string;
  readonly severity: "information" | "warning" | "error";
  readonly busy: boolean;
  /** The most helpful thing to do. */
  readonly action: "menu" | "restart" | "install" | "trust" | "interpreter";
}

const QUIET = { severity: "information", busy: false, action: "menu" } as const;

export function statusText(phase: Phase, status: ServerStatus | undefined): StatusText {
  switch (phase.kind) {
    case "off":
      return { ...QUIET, icon: "circle-slash", text: "mugraph", detail: "mugraph is not running", action: "restart" };
    case "untrusted":
      return {
        ...QUIET,
        icon: "shield",
        text: "mugraph",
        detail: "mugraph runs the workspace's code, so it waits until the workspace is trusted",
        action: "trust",
      };
    case "no-python":
      return warning("no Python", "No Python interpreter was found; select one, or set mugraph.interpreter", "interpreter");
    case "missing":
      return warning(
        "not installed",
        `mugraph is not installed in ${phase.python} (${phase.chosenBy})`,
        "install",
      );
    case "unfit":
      return warning(
        "wrong Python",
        `${phase.python} (${phase.chosenBy}) cannot run mugraph: ${phase.why}`,
        "interpreter",
      );
    case "starting":
      return { ...QUIET, icon: "loading~spin", text: "mugraph", detail: "The language server is starting", busy: true };
    case "restarting":
      return {
        icon: "loading~spin",
        text: "mugraph",
        detail: `${phase.why}; it is started again`,
        severity: "warning",
        busy: true,
        action: "restart",
      };
    case "failed":
      return { icon: "error", text: "mugraph", detail: phase.why, severity: "error", busy: false, action: "restart" };
    case "running":
      return status === undefined
        ? { ...QUIET, icon: "loading~spin", text: "mugraph", detail: "The language server is starting", busy: true }
        : running(status);
  }
}

function running(status: ServerStatus): StatusText {
  const device = status.engines.find((engine) => engine.device !== "")?.device ?? "";
  const text = device === "" ? "mugraph" : `mugraph: ${short(device)}`;
  const detail = sentence(status.message);
  switch (status.state) {
    case "disabled":
      return { ...QUIET, icon: "circle-slash", text: "mugraph", detail };
    case "untrusted":
      return { ...QUIET, icon: "shield", text: "mugraph", detail, action: "trust" };
    case "errored":
      return { icon: "error", text: "mugraph", detail, severity: "error", busy: false, action: "restart" };
    case "restarting":
      return { icon: "loading~spin", text, detail, severity: "warning", busy: true, action: "restart" };
    case "starting":
    case "searching":
      return { ...QUIET, icon: "loading~spin", text, detail, busy: true };
    case "idle":
      return { ...QUIET, icon: "zap", text, detail };
  }
}

function warning(what: string, detail: string, action: StatusText["action"]): StatusText {
  return { icon: "warning", text: `mugraph: ${what}`, detail, severity: "warning", busy: false, action };
}

/** For the tooltip: each engine's device, what kernels are made for there, and its Python. */
export function engineLines(status: ServerStatus | undefined): string[] {
  const lines = (status?.engines ?? []).flatMap(({ device, target, python }) => [
    ...(device === "" ? [] : [`Device: ${device}; kernels are made for ${target === "" ? "it" : target}`]),
    ...(python === "" ? [] : [`Python: ${python}`]),
  ]);
  return [...new Set(lines)];
}

/** "NVIDIA H200" is known as "H200" where room is short. */
function short(device: string): string {
  return device.replace(/^(NVIDIA|AMD|Intel)\s+(GeForce\s+|Instinct\s+)?/, "");
}

function sentence(text: string): string {
  return text === "" ? "" : text.charAt(0).toUpperCase() + text.slice(1);
}
