import * as vscode from "vscode";

const SECTION = "mugraph";

export function interpreterSetting(scope: vscode.Uri | undefined): string {
  return vscode.workspace.getConfiguration(SECTION, scope ?? null).get("interpreter", "");
}

/** What pip is given to install mugraph. */
export function installFrom(): string {
  const set = vscode.workspace.getConfiguration(SECTION).get("server.installFrom", "mugraph").trim();
  return set === "" ? "mugraph" : set;
}

/** Whether the server itself may be another one after this change; the server is told of the others by itself. */
export function choosesServer(change: vscode.ConfigurationChangeEvent): boolean {
  return change.affectsConfiguration(`${SECTION}.interpreter`);
}

export function theme(): "light" | "dark" {
  const kind = vscode.window.activeColorTheme.kind;
  return kind === vscode.ColorThemeKind.Dark || kind === vscode.ColorThemeKind.HighContrast ? "dark" : "light";
}
