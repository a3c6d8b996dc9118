// Neovim ends in the middle of a search: with :qall!, and killed. Server, engine and what they started are gone in 2 s.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Version, start, versions } from "./lib/neovim.ts";
import { isAlive } from "./lib/processes.ts";
import { timed } from "./lib/timings.ts";
import { until } from "./lib/wait.ts";
import { Workspace } from "./lib/workspace.ts";

const FILE = "llama_block.py"; // its search takes minutes when it may
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

async function endsInTheMiddle(version: Version, workspace: Workspace, way: "quit" | "kill"): Promise<number> {
  const searching = join(workspace.root, "searching");
  const quit = join(workspace.root, "quit");
  const { child, words } = start(version, workspace, '{ target = "h100", search = { budget = 120 } }', "search.lua", {
    MUGRAPH_FILE: FILE,
    MUGRAPH_SEARCHING: searching,
    MUGRAPH_QUIT: quit,
  });
  try {
    await until(`a search is under way: ${words()}`, () => existsSync(searching), 90_000);
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
    if (way === "quit") assert.equal(child.exitCode, 0, words());
    return took;
  } finally {
    for (const pid of processes(workspace)) process.kill(pid, "SIGKILL");
  }
}

describe("Neovim ends in the middle of a search", { timeout: 400_000 }, () => {
  for (const version of versions) {
    for (const way of ["quit", "kill"] as const) {
      test(`${version.name}, ${way}: nothing is left after 2 s`, async () => {
        const workspace = new Workspace([FILE]);
        try {
          const took = await endsInTheMiddle(version, workspace, way);
          timed(`${version.name}: ${way} in a search, everything ended`, took);
          assert.ok(took <= LIMIT_MS, `it took ${String(took)} ms`);
        } finally {
          workspace.remove();
        }
      });
    }
  }
});
