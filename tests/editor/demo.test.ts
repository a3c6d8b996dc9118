// What `make demo-editor` starts: it prints an address, serves there on this machine alone, and ends with Ctrl+C.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { below, isAlive } from "./lib/processes.ts";
import { until } from "./lib/wait.ts";

test("the demo prints its address, answers there, and leaves nothing behind", { timeout: 120_000 }, async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "demo.ts")], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (data: Buffer) => (said += data.toString()));
  try {
    const address = await until("an address", () => /http:\/\/\S+/.exec(said)?.[0], 60_000);
    const url = new URL(address);
    assert.equal(url.hostname, "127.0.0.1");
    assert.match(url.searchParams.get("payload") ?? "", /rmsnorm_linear\.py/);
    const answer = await fetch(address);
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /workbench/);
    const started = below(child.pid ?? 0);
    assert.ok(started.length > 0);
    child.kill("SIGINT");
    await until("it ends", () => child.exitCode !== null, 30_000);
    assert.equal(child.exitCode, 0);
    await until("nothing is left", () => started.every(({ pid }) => !isAlive(pid)));
  } finally {
    if (child.exitCode === null) child.kill("SIGTERM");
  }
});
