import * as vscode from "vscode";
import type { GraphPanel } from "../graph/panel";
import type { Change } from "../views/change";
import { regionNear, regionsOf, type Region } from "../views/regions";
import { Installer, selectInterpreter } from "./install";
import { keysOf } from "./keys";
import { openSample } from "./sample";
import type { Server } from "./server";
import type { Status } from "./status";

export interface CommandParts {
  readonly server: Server;
  readonly change: Change;
  readonly graph: GraphPanel;
  readonly installer: Installer;
  readonly log: vscode.LogOutputChannel;
  readonly status: Status;
}

export function registerCommands(parts: CommandParts): vscode.Disposable[] {
  const { server, change, graph, installer, log } = parts;
  const commands: Record<string, (...given: unknown[]) => Promise<unknown>> = {
    // Named by the server's links and actions.
    "mugraph.showGraph": (uri, key) => graph.show(vscode.Uri.parse(String(uri)), keysOf(key)[0]),
    "mugraph.showChange": (uri, keys) => change.show(String(uri), keysOf(keys)),
    "mugraph.showKernel": (uri, keys) => change.showKernel(String(uri), keysOf(keys)),
    // For the palette, buttons and the status item.
    "mugraph.menu": () => menu(server),
    "mugraph.restartServer": () => server.restart(),
    "mugraph.searchFile": () => onFile(server, "mugraph.searchAgain"),
    "mugraph.cancelSearch": () => onFile(server, "mugraph.cancel"),
    "mugraph.searchAllFiles": async () => {
      const count = await execute(server, "mugraph.searchWorkspace");
      void vscode.window.showInformationMessage(`mugraph searches ${String(count)} files in the background.`);
    },
    "mugraph.forgetResults": () => execute(server, "mugraph.clearResults"),
    "mugraph.openGraph": async () => {
      const editor = await pythonEditor();
      await graph.show(editor.document.uri, undefined);
    },
    "mugraph.previewChange": async () => {
      const region = await improvedHere();
      await change.show(asUri(server, region.uri), [region.key]);
    },
    "mugraph.previewKernel": async () => {
      const region = await improvedHere();
      await change.showKernel(asUri(server, region.uri), [region.key]);
    },
    "mugraph.applyShown": () => change.applyShown(),
    "mugraph.showShownKernel": () => change.showShownKernel(),
    "mugraph.installInEnvironment": () => installer.install(),
    "mugraph.selectInterpreter": () => selectInterpreter(),
    "mugraph.showOutput": () => {
      log.show(true);
      return Promise.resolve();
    },
    "mugraph.openLogFile": () => execute(server, "mugraph.showLog"),
    "mugraph.diagnosticsReport": () => report(server),
    "mugraph.openWalkthrough": async () => {
      await vscode.commands.executeCommand("workbench.action.openWalkthrough", "mugraph.mugraph#start", false);
      await parts.status.announce();
    },
    "mugraph.openSample": () => openSample(),
  };
  return Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(name, async (...given: unknown[]) => {
      try {
        await run(...given);
      } catch (error) {
        const sentence = error instanceof Error ? error.message : String(error);
        log.warn(`${name}: ${sentence}`);
        void vscode.window.showWarningMessage(`mugraph: ${sentence}`);
      }
    }),
  );
}

async function menu(server: Server): Promise<void> {
  const entries = [
    { label: "$(debug-restart) Restart", command: "mugraph.restartServer" },
    { label: "$(type-hierarchy) Show the μGraph", command: "mugraph.openGraph" },
    { label: "$(diff) Show the Change First", command: "mugraph.previewChange" },
    { label: "$(search) Search This File Again", command: "mugraph.searchFile" },
    { label: "$(output) Show Output", command: "mugraph.showOutput" },
    { label: "$(bug) Diagnostics Report", command: "mugraph.diagnosticsReport" },
  ];
  const shown = server.client === undefined ? entries.filter(({ label }) => /Restart|Output/.test(label)) : entries;
  const chosen = await vscode.window.showQuickPick(shown, { title: "mugraph" });
  if (chosen !== undefined) await vscode.commands.executeCommand(chosen.command);
}

async function report(server: Server): Promise<void> {
  const client = server.client;
  const facts: unknown =
    client === undefined ? { server: server.phase } : await client.sendRequest("mugraph/report", null);
  const versions = { editor: `${vscode.env.appName} ${vscode.version}`, host: vscode.env.appHost };
  const content = `${JSON.stringify({ ...versions, ...(facts as object) }, null, 2)}\n`;
  const document = await vscode.workspace.openTextDocument({ language: "json", content });
  await vscode.window.showTextDocument(document);
}

function execute(server: Server, command: string, ...given: unknown[]): Promise<unknown> {
  const client = server.client;
  if (client === undefined) throw new Error("the language server is not running");
  return client.sendRequest("workspace/executeCommand", { command, arguments: given });
}

async function onFile(server: Server, command: string): Promise<unknown> {
  return execute(server, command, asUri(server, (await pythonEditor()).document.uri));
}

function asUri(server: Server, uri: vscode.Uri): string {
  return server.client?.code2ProtocolConverter.asUri(uri) ?? uri.toString();
}

/** The one that is active, else one in sight, else one of a tab, which is shown then: the walkthrough covers them. */
async function pythonEditor(): Promise<vscode.TextEditor> {
  const editors = [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors];
  const found = editors.find((editor) => editor?.document.languageId === "python");
  if (found !== undefined) return found;
  const inputs = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ input }) => input));
  const files = inputs.flatMap((input) => (input instanceof vscode.TabInputText && input.uri.path.endsWith(".py") ? [input.uri] : []));
  const last = files.at(-1); // the one that was opened last
  if (last === undefined) throw new Error("open a Python file first");
  return vscode.window.showTextDocument(last, { preview: false });
}

async function improvedHere(): Promise<Region> {
  const editor = await pythonEditor();
  const improved = regionsOf(editor.document.uri).filter((region) => region.state === "improved");
  const region = regionNear(improved, editor.selection.active.line);
  if (region === undefined) throw new Error("no kernel has been found for this file");
  return region;
}
