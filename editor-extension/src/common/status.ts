import * as vscode from "vscode";
import type { Server } from "./server";
import { engineLines, statusText, type StatusText } from "./statusText";

const PYTHON = { language: "python" };
const SEVERITY = {
  information: vscode.LanguageStatusSeverity.Information,
  warning: vscode.LanguageStatusSeverity.Warning,
  error: vscode.LanguageStatusSeverity.Error,
};
const ACTIONS: Record<StatusText["action"], { title: string; command: string }> = {
  menu: { title: "Restart", command: "mugraph.restartServer" },
  restart: { title: "Restart", command: "mugraph.restartServer" },
  install: { title: "Install", command: "mugraph.installInEnvironment" },
  trust: { title: "Manage Trust", command: "workbench.trust.manage" },
  interpreter: { title: "Select Interpreter", command: "mugraph.selectInterpreter" },
};

/** The item in the status bar, while a Python file is shown, and its fuller form in the language status. */
export class Status implements vscode.Disposable {
  private readonly bar = vscode.window.createStatusBarItem("mugraph.status", vscode.StatusBarAlignment.Right, 100);
  private readonly item = vscode.languages.createLanguageStatusItem("mugraph.status", PYTHON);
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.bar.name = "mugraph";
    this.item.name = "mugraph";
    this.disposables = [
      this.bar,
      this.item,
      server.onPhase(() => this.show()),
      server.onStatus(() => this.show()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
    ];
    this.show();
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
  }

  private show(): void {
    const { phase, status } = this.server;
    const said = statusText(phase, status);
    const action = ACTIONS[said.action];
    this.item.text = said.text;
    this.item.detail = said.detail;
    this.item.severity = SEVERITY[said.severity];
    this.item.busy = said.busy;
    this.item.command = action;
    this.bar.text = `$(${said.icon}) ${said.text}`;
    this.bar.tooltip = tooltip(said, action, engineLines(status));
    this.bar.accessibilityInformation = { label: `mugraph: ${said.detail}` };
    this.bar.command = said.action === "menu" || said.action === "restart" ? "mugraph.menu" : action.command;
    this.bar.backgroundColor =
      said.severity === "error"
        ? new vscode.ThemeColor("statusBarItem.errorBackground")
        : said.severity === "warning" && !said.busy
          ? new vscode.ThemeColor("statusBarItem.warningBackground")
          : undefined;
    if (showsPython()) this.bar.show();
    else this.bar.hide();
    void setContexts(this.contexts());
  }

  /** The walkthrough ticks a step when its context becomes true, and only once: what held before needs another one. */
  async announce(): Promise<void> {
    const now = Object.entries(this.contexts());
    await setContexts(Object.fromEntries(now.map(([name, value]) => [`${name}Before`, value])));
  }

  private contexts(): Record<string, boolean> {
    const { status } = this.server;
    return {
      "mugraph.ready": status !== undefined,
      "mugraph.found": (status?.regions.improved ?? 0) > 0,
      "mugraph.applied": (status?.regions.applied ?? 0) > 0,
    };
  }
}

async function setContexts(values: Record<string, boolean>): Promise<void> {
  for (const [name, value] of Object.entries(values)) {
    await vscode.commands.executeCommand("setContext", name, value);
  }
}

/** Focus in the μGraph view makes the active editor undefined, while its file is still in sight. */
function showsPython(): boolean {
  const active = vscode.window.activeTextEditor;
  if (active !== undefined) return active.document.languageId === "python";
  return vscode.window.visibleTextEditors.some((editor) => editor.document.languageId === "python");
}

function tooltip(said: StatusText, action: { title: string; command: string }, lines: string[]): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  text.isTrusted = { enabledCommands: [action.command, "mugraph.showOutput"] };
  text.appendMarkdown("**mugraph**\n\n");
  text.appendText(said.detail);
  for (const line of lines) text.appendMarkdown("\n\n").appendText(line);
  text.appendMarkdown(`\n\n[${action.title}](command:${action.command}) · [Output](command:mugraph.showOutput)`);
  return text;
}
