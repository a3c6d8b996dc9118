import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, writeFileSync, createWriteStream } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { kill } from "node:process";
import { codeServer, out, python, vsix } from "./paths.ts";
import { below, isAlive } from "./processes.ts";
import { pause, until } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

export const QUIET_SETTINGS = {
  "chat.disableAIFeatures": true,
  "editor.autoClosingBrackets": "never",
  "editor.autoClosingQuotes": "never",
  "editor.autoSurround": "never",
  "editor.fontSize": 14,
  "editor.minimap.enabled": false,
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "files.autoSave": "off",
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "window.commandCenter": false,
  "workbench.editor.restoreViewState": false,
  "workbench.editor.useModal": "off",
  "workbench.colorTheme": "Dark Modern",
  "workbench.layoutControl.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

/** VS Code in a browser, with the packaged extension installed as a user would. */
export class CodeServer {
  readonly port: number;
  readonly workspace: Workspace;
  /** The user's, as they were at the start. */
  readonly settings: object;
  private readonly process: ChildProcess;

  private constructor(port: number, workspace: Workspace, process: ChildProcess, settings: object) {
    this.settings = settings;
    this.port = port;
    this.workspace = workspace;
    this.process = process;
  }

  static async start(workspace: Workspace, settings: object = {}): Promise<CodeServer> {
    const data = join(workspace.root, "data");
    const extensions = join(workspace.root, "extensions");
    mkdirSync(join(data, "User"), { recursive: true });
    const all = { ...QUIET_SETTINGS, "mugraph.interpreter": python, "mugraph.target": "h100", ...settings };
    writeFileSync(join(data, "User/settings.json"), JSON.stringify(all));
    const places = ["--user-data-dir", data, "--extensions-dir", extensions];
    execFileSync(process.execPath, [codeServer, ...places, "--install-extension", vsix], { stdio: "ignore" });
    const port = await freePort();
    const quiet = ["--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"];
    const child = spawn(
      process.execPath,
      [codeServer, ...places, "--bind-addr", `127.0.0.1:${String(port)}`, ...quiet, "--reconnection-grace-time", "5", workspace.folder],
      { env: workspace.environment, stdio: ["ignore", "pipe", "pipe"] },
    );
    const log = createWriteStream(join(out, "code-server.log"));
    child.stdout.pipe(log);
    child.stderr.pipe(log);
    const server = new CodeServer(port, workspace, child, all);
    await until("code-server answers", async () => {
      if (child.exitCode !== null) throw new Error(`code-server ended with ${String(child.exitCode)}: see ${join(out, "code-server.log")}`);
      return fetch(`http://127.0.0.1:${String(port)}/healthz`).then((response) => response.ok, () => false);
    }, 30_000);
    return server;
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  get settingsFile(): string {
    return join(this.workspace.root, "data/User/settings.json");
  }

  /** The workbench, with this file open. */
  address(file: string): string {
    const payload = JSON.stringify([["openFile", `vscode-remote://127.0.0.1:${String(this.port)}${file}`]]);
    const query = new URLSearchParams({ folder: this.workspace.folder, payload });
    return `http://127.0.0.1:${String(this.port)}/?${query.toString()}`;
  }

  /** Gently: killed at once it would leave the extension host behind. Returns what was still there after 15 s. */
  async stop(): Promise<string[]> {
    const all = below(this.pid);
    this.process.kill("SIGTERM");
    const end = Date.now() + 15_000;
    const left = () => all.filter((one) => isAlive(one.pid));
    while ((this.process.exitCode === null || left().length > 0) && Date.now() < end) await pause(100);
    const found = left();
    for (const { pid } of found) kill(pid, "SIGKILL");
    if (this.process.exitCode === null) this.process.kill("SIGKILL");
    return found.map((one) => one.command);
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(new Error("no port"))));
    });
  });
}
