import * as vscode from "vscode";
import type { Drawing, ProtocolRange, SearchView } from "../common/protocol";
import type { Server } from "../common/server";
import { theme } from "../common/settings";
import { functionAt, regionsOf, type Region } from "../views/regions";
import { editorOf, Highlight } from "./highlight";
import type { FromPage, ToPage } from "./messages";
import { page } from "./page";
import { innermost } from "./places";

const DRAWN = new Set(["improved", "no-gain", "applied", "stale"]);
const LISTED = new Set([...DRAWN, "searching"]);
const NONE = "No region of this file has a μGraph yet.";

interface Shown {
  readonly uri: vscode.Uri;
  /** undefined: not known yet, it is that at `line`. */
  readonly key: string | undefined;
  readonly line: number;
  /** What the drawing on the page was made of; undefined while there is none. */
  readonly drawn: string | undefined;
}

/** The μGraph view: one panel, for the region that was asked for last. */
export class GraphPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private isReady = false;
  private shown: Shown | undefined;
  private asked = 0;
  private readonly highlight = new Highlight();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly root: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      this.highlight,
      vscode.window.onDidChangeActiveColorTheme(() => void this.refresh()),
      vscode.window.onDidChangeTextEditorSelection((event) => void this.cursorMoved(event)),
      server.onSearch((uri) => {
        if (uri.toString() === this.shown?.uri.toString()) void this.refresh();
      }),
      server.onPhase((phase) => {
        if (phase.kind === "running") void this.refresh();
      }),
    ];
  }

  /** Without a key, of the region at the cursor. */
  async show(uri: vscode.Uri, key: string | undefined): Promise<void> {
    const line = editorOf(uri)?.selection.active.line ?? 0;
    await this.open(uri);
    this.highlight.clear();
    this.shown = { uri, key, line, drawn: undefined };
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
    const column = columnOf(uri);
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
      this.highlight.clear();
    });
    panel.webview.html = page(panel.webview, this.root);
    this.panel = panel;
    await vscode.window.showTextDocument(uri, { viewColumn: column });
  }

  /** What the page shows, brought up to date. While no server runs, it stays. */
  private async refresh(): Promise<void> {
    if (this.panel === undefined || this.shown === undefined || !this.isReady) return;
    const mine = ++this.asked;
    try {
      const search = await this.ask();
      const shown = this.current();
      if (this.isOutdated(mine) || search === undefined || shown === undefined) return;
      if (search === null) {
        if (shown.drawn === undefined) this.post({ type: "none", sentence: NONE });
        return;
      }
      const wanted = `${search.key} ${theme()} ${search.state === "stale" ? "" : search.message}`;
      // Of code that was edited, or is searched again, the last drawing stays.
      const keeps = !DRAWN.has(search.state) || (search.state === "stale" && shown.drawn !== undefined);
      const drawing = keeps || shown.drawn === wanted ? undefined : await this.draw(shown.uri, search.key);
      if (this.isOutdated(mine)) return;
      const svg = drawing ?? (shown.drawn === undefined ? "" : undefined);
      this.shown = { ...shown, key: search.key, drawn: drawing === undefined || drawing === "" ? shown.drawn : wanted };
      await this.tell(shown.uri, search, svg);
    } catch (error) {
      if (this.isOutdated(mine)) return;
      const sentence = error instanceof Error ? error.message : String(error);
      this.log.warn(`no μGraph: ${sentence}`);
      if (this.shown.drawn === undefined) this.post({ type: "none", sentence: `${capital(sentence)}.` });
    }
  }

  /** As it is after a wait. */
  private current(): Shown | undefined {
    return this.shown;
  }

  /** Whether another refresh began since: that one says what is shown. */
  private isOutdated(mine: number): boolean {
    return mine !== this.asked;
  }

  /** What the server knows of the region now; null: there is none; undefined: no server runs. */
  private async ask(): Promise<SearchView | null | undefined> {
    const { shown } = this;
    const client = this.server.client;
    if (shown === undefined || client === undefined) return undefined;
    const uri = client.code2ProtocolConverter.asUri(shown.uri);
    const which = shown.key === undefined ? { line: shown.line } : { key: shown.key };
    return client.sendRequest<SearchView | null>("mugraph/search", { uri, ...which });
  }

  /** "" where there is no μGraph: nothing was found. */
  private async draw(source: vscode.Uri, key: string): Promise<string> {
    const client = this.server.client;
    if (client === undefined) return "";
    try {
      const params = { uri: client.code2ProtocolConverter.asUri(source), key, theme: theme() };
      return (await client.sendRequest<Drawing>("mugraph/graph", params)).svg;
    } catch (error) {
      this.log.info(`no μGraph is drawn: ${error instanceof Error ? error.message : String(error)}`);
      return "";
    }
  }

  private async tell(uri: vscode.Uri, search: SearchView, svg: string | undefined): Promise<void> {
    const document = await vscode.workspace.openTextDocument(uri);
    const regions = regionsOf(uri).filter((region) => LISTED.has(region.state));
    const named = (one: Region) => `${functionAt(document, one.range.start.line)}, line ${one.range.start.line + 1}`;
    if (this.panel !== undefined) this.panel.title = `μGraph: ${search.function}`;
    const choices = regions.map((one) => ({ key: one.key, label: named(one) }));
    this.post({ type: "show", svg, title: search.function, search, regions: choices });
  }

  private heard(message: FromPage): void {
    switch (message.type) {
      case "ready":
        this.isReady = true;
        void this.refresh();
        break;
      case "node":
        void this.showSource(message.places);
        break;
      case "unselect":
        this.highlight.clear();
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
    if (shown?.key === undefined || client === undefined) return;
    const uri = client.code2ProtocolConverter.asUri(shown.uri);
    const names = { apply: "mugraph.apply", change: "mugraph.showChange", kernel: "mugraph.showKernel" };
    // What is opened belongs where the source is, not where this panel is.
    await vscode.window.showTextDocument(shown.uri, { viewColumn: columnOf(shown.uri), preserveFocus: false });
    await vscode.commands.executeCommand(names[command], uri, [shown.key]);
  }

  /** The statements that a box comes from; the whole region where that is not known any more. */
  private async showSource(places: readonly number[]): Promise<void> {
    const search = await this.ask();
    const { shown } = this;
    if (shown === undefined || search === undefined || search === null) return;
    const ranges = places.flatMap((number) => search.places[number] ?? []);
    const marked = ranges.length > 0 || search.range === null ? ranges : [search.range];
    this.highlight.show(shown.uri, marked.map(asRange));
  }

  private async cursorMoved(event: vscode.TextEditorSelectionChangeEvent): Promise<void> {
    const uri = event.textEditor.document.uri.toString();
    const cursor = event.selections[0]?.active;
    if (this.panel?.visible !== true || uri !== this.shown?.uri.toString() || cursor === undefined) return;
    if (event.kind === undefined) return; // made by a program, not by a person
    this.highlight.clear();
    const search = await this.ask();
    if (search === undefined || search === null) return;
    this.post({ type: "select", places: innermost(cursor, search.places) });
  }

  private post(message: ToPage): void {
    if (this.isReady) void this.panel?.webview.postMessage(message);
  }
}

function columnOf(uri: vscode.Uri): vscode.ViewColumn {
  return editorOf(uri)?.viewColumn ?? vscode.ViewColumn.One;
}

function asRange({ start, end }: ProtocolRange): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
