import * as vscode from "vscode";
import { registerCommands } from "./common/commands";
import { Installer } from "./common/install";
import { middleware } from "./common/middleware";
import { Python } from "./common/python";
import { Server } from "./common/server";
import { choosesServer, theme } from "./common/settings";
import { Status } from "./common/status";
import { GraphPanel } from "./graph/panel";
import { Change } from "./views/change";
import { Lenses } from "./views/lenses";

/** Granting trust and changing an interpreter come as several events each. */
const SETTLE_MS = 150;

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("mugraph", { log: true });
  const python = new Python(log);
  const lenses = new Lenses();
  const first = () => vscode.window.activeTextEditor?.document.uri ?? vscode.workspace.workspaceFolders?.[0]?.uri;
  const server = new Server({
    log,
    cwd: vscode.Uri.joinPath(context.extensionUri, "dist").fsPath,
    middleware: middleware({
      interpreter: async (scope) => (await python.find(scope))?.path,
      remember: (document, found) => lenses.remember(document, found),
    }),
    interpreter: () => python.find(vscode.workspace.workspaceFolders?.[0]?.uri ?? first()),
  });
  running = server;
  lenses.begin(server);
  const change = new Change(server);
  const graph = new GraphPanel(server, context.extensionUri, log);
  const status = new Status(server);
  const installer = new Installer(server, () => python.find(vscode.workspace.workspaceFolders?.[0]?.uri ?? first()));
  let soon: NodeJS.Timeout | undefined;
  const refresh = () => {
    clearTimeout(soon);
    soon = setTimeout(() => void server.refresh(), SETTLE_MS);
  };
  context.subscriptions.push(
    log,
    python,
    lenses,
    server,
    change,
    graph,
    status,
    ...registerCommands({ server, change, graph, installer, log, status }),
    server.onPhase((phase) => {
      if (phase.kind === "missing") void installer.missing(phase.python, phase.chosenBy);
      if (phase.kind === "failed") void offerRestart(phase.why);
    }),
    python.onDidChange(refresh),
    vscode.workspace.onDidGrantWorkspaceTrust(refresh),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (choosesServer(event)) refresh();
    }),
    vscode.window.onDidChangeActiveColorTheme(() => tell(server, "mugraph/theme", { theme: theme() })),
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      if (editor?.document.languageId === "python") {
        tell(server, "mugraph/visible", { uri: editor.document.uri.toString() });
      }
    }),
    { dispose: () => clearTimeout(soon) },
  );
  void server.refresh();
}

export function deactivate(): Promise<void> | undefined {
  return running?.stop();
}

async function offerRestart(why: string): Promise<void> {
  const answer = await vscode.window.showErrorMessage(`mugraph: ${why}.`, "Restart", "Show Output");
  if (answer === "Restart") await vscode.commands.executeCommand("mugraph.restartServer");
  else if (answer === "Show Output") await vscode.commands.executeCommand("mugraph.showOutput");
}

function tell(server: Server, method: string, params: object): void {
  void server.client?.sendNotification(method, params);
}
