// VS Code in a browser on copies of the samples, with the extension installed; until Ctrl+C.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { CodeServer } from "./lib/codeServer.ts";
import { repository } from "./lib/paths.ts";
import { Workspace } from "./lib/workspace.ts";

const samples = readdirSync(join(repository, "samples")).filter((name) => name.endsWith(".py"));
const workspace = new Workspace(samples);
const server = await CodeServer.start(workspace, { "mugraph.target": "auto" });
console.log(`\n  ${server.address(workspace.path("rmsnorm_linear.py"))}\n\n  Ctrl+C ends it; the files are copies.`);
let ending = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (ending) return;
    ending = true;
    void server.stop().finally(() => {
      workspace.remove();
      process.exit(0);
    });
  });
}
