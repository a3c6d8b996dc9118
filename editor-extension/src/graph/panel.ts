import * as vscode from "vscode";
import type { Drawing } from "../common/protocol";
import type { Server } from "../common/server";
import { theme } from "../common/settings";
import { functionAt, regionNear, regionsOf, type Region } from "../views/regions";
import type { FromPage, ToPage } from "./messages";
import { page } from "./page";
import { expressionsAt, placesOf } from "./places";

const SEARCHED = new Set(["improved", "applied", "stale", "searching"]);

/** The μGraph view: one panel, for the region that was asked for last. */
export class GraphPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private isReady = false;
  private shown: { uri: vscode.Uri; key: string; svg: string; theme: string; message: string } | undefined;
  private sources: readonly string[] = [];
  private asked = 0;
  private readonly highlight = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("editor.findMatchHighlightBackground"),
    borderRadius: "2px",
  });
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly root: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      this.highlight,
      vscode.window.onDidChangeActiveColorTheme(() => void this.refresh()),
      vscode.languages.onDidChangeDiagnostics((event) => this.maybeChanged(event.uris)),
      vscode.window.onDidChangeTextEditorSelection((event) => this.cursorMoved(event)),
      server.onPhase((phase) => {
        if (phase.kind === "running") void this.refresh();
      }),
    ];
  }

  /** Without a key, of the region at the cursor. */
  async show(uri: vscode.Uri, key: string | undefined): Promise<void> {
    const near = key ?? this.nearCursor(uri)?.key;
    await this.open(uri);
    if (near === undefined) {
      this.post({ type: "none", sentence: "No region of this file has a μGraph yet." });
      return;
    }
    this.shown = { uri, key: near, svg: "", theme: "", message: "" };
    await this.refresh();
  }

  dispose(): void {
    this.panel?.dispose();
    for (const one of this.disposables) one.dispose();
  }

  /** Below the code: data flows from left to right, so graphs are wide. */
  private async open(uri: vscode.Uri): Promise<void> {
    if (this.panel !== undefined) {
      this.panel.reveal(undefined, true);
      return;
    }
    const column = this.columnOf(uri);
    await vscode.commands.executeCommand("workbench.action.newGroupBelow");
    const panel = vscode.window.createWebviewPanel("mugraph.graph", "μGraph", vscode.ViewColumn.Active, {
      enableScripts: true,
      localResourceRoots: [vscode.Uri.joinPath(this.root, "dist")],
      retainContextWhenHidden: true,
    });
    panel.iconPath = vscode.Uri.joinPath(this.root, "media", "icon.png");
    this.isReady = false;
    panel.webview.onDidReceiveMessage((message: FromPage) => this.heard(message));
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.shown = undefined;
      this.mark(undefined, []);
    });
    panel.webview.html = page(panel.webview, this.root);
    this.panel = panel;
    await vscode.window.showTextDocument(uri, { viewColumn: column });
  }

  private async refresh(): Promise<void> {
    const shown = this.shown;
    if (this.panel === undefined || shown === undefined || !this.isReady) return;
    const client = this.server.client;
    if (client === undefined) return; // what is shown stays; there is more once the server runs
    const mine = ++this.asked;
    const document = await vscode.workspace.openTextDocument(shown.uri);
    const regions = regionsOf(shown.uri).filter((region) => SEARCHED.has(region.state));
    const region = regions.find((one) => one.key === shown.key);
    const named = (one: Region) => `${functionAt(document, one.range.start.line)}, line ${one.range.start.line + 1}`;
    const title = region === undefined ? "μGraph" : functionAt(document, region.range.start.line);
    const now = theme();
    if (shown.svg === "") this.post({ type: "wait", sentence: "Drawing…" });
    try {
      const params = { uri: client.code2ProtocolConverter.asUri(shown.uri), key: shown.key, theme: now };
      const { svg } = await client.sendRequest<Drawing>("mugraph/graph", params);
      if (mine !== this.asked) return;
      this.shown = { ...shown, svg, theme: now, message: region?.message ?? "" };
      this.panel.title = `μGraph: ${title}`;
      this.post({
        type: "graph",
        svg,
        title,
        sentence: region?.message ?? "",
        key: shown.key,
        regions: regions.map((one) => ({ key: one.key, label: named(one) })),
      });
    } catch (error) {
      if (mine !== this.asked) return;
      const sentence = error instanceof Error ? error.message : String(error);
      this.log.warn(`no μGraph: ${sentence}`);
      if (shown.svg === "") this.post({ type: "none", sentence: `${capital(sentence)}.` });
    }
  }

  private heard(message: FromPage): void {
    switch (message.type) {
      case "ready":
        this.isReady = true;
        void this.refresh();
        break;
      case "node":
        this.sources = message.sources;
        this.highlightSources(message.reveal);
        break;
      case "unselect":
        this.sources = [];
        this.mark(undefined, []);
        break;
      case "region":
        if (this.shown !== undefined) void this.show(this.shown.uri, message.key);
        break;
      case "command":
        void this.run(message.command);
    }
  }

  private async run(command: "apply" | "change" | "kernel"): Promise<void> {
    const shown = this.shown;
    const client = this.server.client;
    if (shown === undefined || client === undefined) return;
    const uri = client.code2ProtocolConverter.asUri(shown.uri);
    const names = { apply: "mugraph.apply", change: "mugraph.showChange", kernel: "mugraph.showKernel" };
    // What is opened belongs where the source is, not where this panel is.
    await vscode.window.showTextDocument(shown.uri, { viewColumn: this.columnOf(shown.uri), preserveFocus: false });
    await vscode.commands.executeCommand(names[command], uri, [shown.key]);
  }

  /** The code that the selected operator reads; the whole region where it reads none directly. */
  private highlightSources(reveal: boolean): void {
    const shown = this.shown;
    const region = this.region();
    if (shown === undefined || region === undefined) return;
    const editor = this.editorOf(shown.uri);
    if (editor === undefined) return;
    const base = editor.document.offsetAt(region.range.start);
    const text = editor.document.getText(region.range);
    const at = (offset: number) => editor.document.positionAt(base + offset);
    const spans = this.sources.flatMap((source) => placesOf(source, text));
    const ranges = spans.map(({ start, end }) => new vscode.Range(at(start), at(end)));
    const marked = ranges.length > 0 ? ranges : [region.range];
    this.mark(editor, marked);
    if (reveal && marked[0] !== undefined) {
      editor.revealRange(marked[0], vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }
  }

  private cursorMoved(event: vscode.TextEditorSelectionChangeEvent): void {
    const shown = this.shown;
    const uri = event.textEditor.document.uri.toString();
    if (this.panel?.visible !== true || uri !== shown?.uri.toString()) return;
    if (event.kind === undefined) return; // made by a program, not by a person
    const region = this.region();
    const cursor = event.selections[0]?.active;
    if (region === undefined || cursor === undefined) return;
    this.mark(event.textEditor, []);
    if (!region.range.contains(cursor)) {
      this.post({ type: "select", sources: [] });
      return;
    }
    const { document } = event.textEditor;
    const offset = document.offsetAt(cursor) - document.offsetAt(region.range.start);
    this.post({ type: "select", sources: expressionsAt(offset, sourcesIn(shown.svg), document.getText(region.range)) });
  }

  private maybeChanged(uris: readonly vscode.Uri[]): void {
    const shown = this.shown;
    if (shown === undefined || !uris.some((uri) => uri.toString() === shown.uri.toString())) return;
    const region = this.region();
    if (region !== undefined && region.message !== shown.message) void this.refresh();
  }

  private region(): Region | undefined {
    const shown = this.shown;
    return shown === undefined ? undefined : regionsOf(shown.uri).find((region) => region.key === shown.key);
  }

  private nearCursor(uri: vscode.Uri): Region | undefined {
    const line = this.editorOf(uri)?.selection.active.line ?? 0;
    return regionNear(
      regionsOf(uri).filter((region) => SEARCHED.has(region.state)),
      line,
    );
  }

  private editorOf(uri: vscode.Uri): vscode.TextEditor | undefined {
    return vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
  }

  private columnOf(uri: vscode.Uri): vscode.ViewColumn {
    return this.editorOf(uri)?.viewColumn ?? vscode.ViewColumn.One;
  }

  private mark(editor: vscode.TextEditor | undefined, ranges: readonly vscode.Range[]): void {
    for (const visible of vscode.window.visibleTextEditors) {
      visible.setDecorations(this.highlight, visible === editor ? ranges : []);
    }
  }

  private post(message: ToPage): void {
    if (this.isReady) void this.panel?.webview.postMessage(message);
  }
}

/** The expressions that the drawing's tensors come from. */
function sourcesIn(svg: string): string[] {
  const found = svg.matchAll(/<title>([^<]*)<\/title><rect class="tensor"/g);
  return [...new Set([...found].map((match) => match[1] ?? ""))].filter((source) => source !== "");
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
