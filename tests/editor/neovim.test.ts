// Neovim with the configuration that the README gives: the oldest version that is supported, and a current one.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Version, start, versions } from "./lib/neovim.ts";
import { python } from "./lib/paths.ts";
import { below, isAlive } from "./lib/processes.ts";
import { timed } from "./lib/timings.ts";
import { until } from "./lib/wait.ts";
import { Workspace } from "./lib/workspace.ts";

const FILE = "rmsnorm_linear.py";

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

async function drive(version: Version, workspace: Workspace): Promise<Seen> {
  const seen = join(workspace.root, "seen.json");
  const settings = '{ target = "h100" }';
  const { child, words } = start(version, workspace, settings, "drive.lua", { MUGRAPH_FILE: FILE, MUGRAPH_SEEN: seen });
  let helpers = below(child.pid ?? 0);
  try {
    await until(`${version.name} ends: ${words()}`, () => {
      if (child.exitCode === null) helpers = [...helpers, ...below(child.pid ?? 0)];
      return child.exitCode !== null;
    }, 150_000, 100);
  } finally {
    if (child.exitCode === null) child.kill("SIGKILL");
  }
  const ended = Date.now();
  await until("server and engine end with Neovim", () => helpers.every(({ pid }) => !isAlive(pid)), 5_000);
  timed(`${version.name}: everything ended`, Date.now() - ended);
  assert.ok(helpers.some(({ command: line }) => line.includes("mugraph")), "no server was seen");
  assert.ok(existsSync(seen), words());
  return JSON.parse(readFileSync(seen, "utf8")) as Seen;
}

function check(seen: Seen, name: string, workspace: Workspace): void {
  assert.equal(seen.problem, undefined);
  assert.match(seen.diagnostic.message, /× by estimate.*verified/);
  assert.equal(seen.diagnostic.line, 14);
  assert.equal(seen.diagnostic.severity, 4, "a hint, not trouble");
  assert.match(seen.hover, /for k: \d+ × \d+/, "the tree, not a picture");
  assert.ok(!seen.hover.includes("data:image"));
  assert.ok(seen.lenses.some((title) => /× by estimate, verified/.test(title)));
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
  for (const version of versions) {
    test(`${version.name}: diagnostics, hover, lens, and a kernel put in`, async () => {
      const workspace = new Workspace([FILE]);
      try {
        check(await drive(version, workspace), version.name, workspace);
      } finally {
        workspace.remove();
      }
    });
  }
});
