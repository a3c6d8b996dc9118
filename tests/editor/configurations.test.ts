// The README's configurations for Helix and Emacs: they can be read, and the command they name is a language server.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { python, repository } from "./lib/paths.ts";
import { until } from "./lib/wait.ts";

const readme = readFileSync(join(repository, "editor-extension/README.md"), "utf8");

function block(language: string): string {
  const found = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1];
  assert.ok(found !== undefined, `the README has no ${language}`);
  return found;
}

/** What the server answers to `initialize` when it is started as an editor starts it. */
async function capabilities(command: readonly string[]): Promise<Record<string, unknown>> {
  const [program = "", ...args] = command;
  const child = spawn(join(dirname(python), program), args, { stdio: ["pipe", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (data: Buffer) => (said += data.toString()));
  const send = (message: object) => {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    child.stdin.write(`Content-Length: ${String(Buffer.byteLength(body))}\r\n\r\n${body}`);
  };
  try {
    send({ id: 1, method: "initialize", params: { processId: process.pid, rootUri: null, capabilities: {} } });
    const body = await until("an answer", () => /\r\n\r\n(\{.*"id":\s*1.*\})/s.exec(said)?.[1]);
    send({ id: 2, method: "shutdown" });
    send({ method: "exit" });
    await until("its end", () => child.exitCode !== null);
    return (JSON.parse(body) as { result: { capabilities: Record<string, unknown> } }).result.capabilities;
  } finally {
    if (child.exitCode === null) child.kill("SIGKILL");
  }
}

test("Helix: the TOML is one, and its server answers", async () => {
  const read = "import json, sys, tomllib; print(json.dumps(tomllib.loads(sys.stdin.read())))";
  const parsed = JSON.parse(execFileSync(python, ["-c", read], { input: block("toml"), encoding: "utf8" })) as {
    "language-server": { mugraph: { command: string; args: string[]; config: { target: string } } };
    language: { name: string; "language-servers": string[] }[];
  };
  const { command, args, config } = parsed["language-server"].mugraph;
  assert.equal(config.target, "auto");
  assert.deepEqual(parsed.language.map(({ name }) => name), ["python"]);
  assert.ok(parsed.language[0]?.["language-servers"].includes("mugraph"));
  const found = await capabilities([command, ...args]);
  assert.ok(found["hoverProvider"] && found["codeActionProvider"] && found["codeLensProvider"]);
});

test("Emacs: the expressions are whole, and their server answers", async () => {
  const lisp = block("elisp");
  let depth = 0;
  for (const sign of lisp.replaceAll(/"[^"]*"/g, "")) {
    depth += sign === "(" ? 1 : sign === ")" ? -1 : 0;
    assert.ok(depth >= 0);
  }
  assert.equal(depth, 0);
  const command = /python-mode \. \(([^)]*)\)/.exec(lisp)?.[1];
  const words = [...(command ?? "").matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? "");
  assert.deepEqual(words, ["mugraph", "server", "--stdio"]);
  assert.ok((await capabilities(words))["hoverProvider"]);
});
