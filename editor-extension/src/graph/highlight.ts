import * as vscode from "vscode";

/** The code that a selected box comes from, marked in the editors that show it. */
export class Highlight implements vscode.Disposable {
  private readonly look = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("editor.findMatchHighlightBackground"),
    borderRadius: "2px",
  });

  show(uri: vscode.Uri, ranges: readonly vscode.Range[]): void {
    const editor = editorOf(uri);
    for (const visible of vscode.window.visibleTextEditors) {
      visible.setDecorations(this.look, visible === editor ? ranges : []);
    }
    const [first] = ranges;
    if (editor !== undefined && first !== undefined) {
      editor.revealRange(first, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }
  }

  clear(): void {
    for (const visible of vscode.window.visibleTextEditors) visible.setDecorations(this.look, []);
  }

  dispose(): void {
    this.look.dispose();
  }
}

export function editorOf(uri: vscode.Uri): vscode.TextEditor | undefined {
  return vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
}
