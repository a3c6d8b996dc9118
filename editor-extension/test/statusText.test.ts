import { expect, test } from "vitest";
import type { EngineView, ServerStatus } from "../src/common/protocol";
import { engineLines, statusText, type Phase } from "../src/common/statusText";

const RUNNING: Phase = { kind: "running", python: "/p", version: "0.1.0" };
const engine = (device: string): EngineView => ({
  root: "/w",
  state: "running",
  message: "",
  command: "/p -m mugraph.worker",
  python: "/p",
  device,
  target: "sm_90",
  versions: {},
  pid: 1,
  restarts: 0,
});
const status = (state: ServerStatus["state"], message: string, device = "NVIDIA H200"): ServerStatus => ({
  state,
  message,
  searching: 0,
  regions: {},
  engines: [engine(device)],
});

test("a server that rests shows its device, and what it has found as a sentence", () => {
  expect(statusText(RUNNING, status("idle", "2 faster"))).toMatchObject({
    text: "mugraph: H200",
    detail: "2 faster",
    severity: "information",
    busy: false,
    action: "menu",
  });
});

test("a search is busy, under the same text: nothing moves in the status bar", () => {
  const searching = statusText(RUNNING, status("searching", "searching 1 file"));
  expect(searching).toMatchObject({ busy: true, text: statusText(RUNNING, status("idle", "")).text, detail: "Searching 1 file" });
});

test("an engine that gave up is an error with a restart", () => {
  expect(statusText(RUNNING, status("errored", "the engine ended five times"))).toMatchObject({
    severity: "error",
    action: "restart",
  });
});

test("trouble before the server runs names the interpreter and offers the cure", () => {
  const missing = statusText({ kind: "missing", python: "/v/python", chosenBy: "selected in the editor" }, undefined);
  expect(missing.action).toBe("install");
  expect(missing.detail).toBe("mugraph is not installed in /v/python (selected in the editor)");
  const unfit = statusText({ kind: "unfit", python: "/v/python", chosenBy: "on the path", why: "it is Python 3.9" }, undefined);
  expect(unfit).toMatchObject({ action: "interpreter", severity: "warning" });
  expect(unfit.detail).toContain("/v/python");
  expect(statusText({ kind: "untrusted" }, undefined).action).toBe("trust");
  expect(statusText({ kind: "failed", python: "/p", why: "It ended" }, undefined)).toMatchObject({ severity: "error", action: "restart" });
});

test("a status of the server before does not speak for one that is starting", () => {
  expect(statusText({ kind: "starting", python: "/p" }, status("idle", "2 faster")).busy).toBe(true);
});

test("the tooltip names the device and what kernels are made for, each once", () => {
  const one = status("idle", "");
  expect(engineLines({ ...one, engines: [engine("NVIDIA H200"), engine("NVIDIA H200")] })).toEqual([
    "Device: NVIDIA H200; kernels are made for sm_90",
    "Python: /p",
  ]);
  expect(engineLines(undefined)).toEqual([]);
});
