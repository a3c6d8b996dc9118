import * as vscode from "vscode";
import { merge, place, type Remembered } from "../common/lensMemory";
import type { Server } from "../common/server";

/** The last lenses of each document, shown while no server is there to give new ones. */
export class Lenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly byUri = new Map<string, Remembered<vscode.CodeLens>[]>();
  private readonly disposables: vscode.Disposable[] = [this.changed];
  private server: Server | undefined;
  readonly onDidChangeCodeLenses = this.changed.event;

  begin(server: Server): void {
    this.server = server;
    this.disposables.push(
      vscode.languages.registerCodeLensProvider({ language: "python" }, this),
      server.onPhase(() => this.changed.fire()),
      vscode.workspace.onDidCloseTextDocument((document) => this.byUri.delete(document.uri.toString())),
    );
  }

  remember(document: vscode.TextDocument, lenses: readonly vscode.CodeLens[]): void {
    const kept = lenses.map((lens) => {
      const line = lens.range.start.line;
      const text = line < document.lineCount ? document.lineAt(line).text : "";
      // Results can be clicked.
      return { line, text, lens, isResult: (lens.command?.command ?? "") !== "" };
    });
    const uri = document.uri.toString();
    this.byUri.set(uri, merge(this.byUri.get(uri) ?? [], kept));
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (this.server === undefined || this.server.client !== undefined) return [];
    const kept = this.byUri.get(document.uri.toString()) ?? [];
    return place(kept, document.lineCount, (line) => document.lineAt(line).text).map(({ line, lens, isResult }) => {
      const title = isResult && lens.command !== undefined ? lens.command.title : "mugraph is not running";
      return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command: "" });
    });
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
  }
}
