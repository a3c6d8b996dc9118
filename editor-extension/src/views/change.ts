import * as vscode from "vscode";
import type { Preview } from "../common/protocol";
import type { Server } from "../common/server";
import { baseName } from "../common/text";

const BEFORE = "mugraph-before";
const AFTER = "mugraph-after";
const KERNEL = "mugraph-kernel";

interface Shown {
  readonly source: string;
  readonly keys: readonly string[];
  readonly preview: Preview;
}

/** The change and the generated kernel as documents that exist only in the editor. */
export class Change implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly shown = new Map<string, Shown>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly disposables: vscode.Disposable[];
  readonly onDidChange = this.changed.event;

  constructor(private readonly server: Server) {
    this.disposables = [
      this.changed,
      ...[BEFORE, AFTER, KERNEL].map((scheme) => vscode.workspace.registerTextDocumentContentProvider(scheme, this)),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.texts.delete(document.uri.toString());
        this.shown.delete(document.uri.toString());
      }),
    ];
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "# This view is over: ask for it again.\n";
  }

  /** The file before and after, side by side, with a button that applies the change. */
  async show(source: string, keys: readonly string[]): Promise<void> {
    const preview = await this.preview(source, keys);
    const path = vscode.Uri.parse(source).path;
    const before = this.put(BEFORE, path, keys, preview.before);
    const after = this.put(AFTER, path, keys, preview.after);
    this.shown.set(after.toString(), { source, keys, preview });
    const title = `${baseName(path)}: PyTorch ↔ generated Triton kernel`;
    await vscode.commands.executeCommand("vscode.diff", before, after, title, { preview: true });
  }

  async showKernel(source: string, keys: readonly string[]): Promise<void> {
    await this.openKernel(await this.preview(source, keys), keys);
  }

  async showShownKernel(): Promise<void> {
    const shown = this.current();
    if (shown !== undefined) await this.openKernel(shown.preview, shown.keys);
  }

  async applyShown(): Promise<void> {
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
    const shown = this.current();
    const client = this.server.client;
    if (shown === undefined || client === undefined) return;
    await client.sendRequest("workspace/executeCommand", {
      command: "mugraph.apply",
      arguments: [shown.source, shown.keys],
    });
    if (tab !== undefined) await vscode.window.tabGroups.close(tab);
    await vscode.window.showTextDocument(vscode.Uri.parse(shown.source), { preview: false });
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
  }

  private current(): Shown | undefined {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    return input instanceof vscode.TabInputTextDiff ? this.shown.get(input.modified.toString()) : undefined;
  }

  private async preview(source: string, keys: readonly string[]): Promise<Preview> {
    const client = this.server.client;
    if (client === undefined) throw new Error("the language server is not running");
    return client.sendRequest<Preview>("mugraph/preview", { uri: source, keys });
  }

  private async openKernel(preview: Preview, keys: readonly string[]): Promise<void> {
    const uri = this.put(KERNEL, preview.module_path, keys, preview.module_text);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: false });
  }

  private put(scheme: string, path: string, keys: readonly string[], text: string): vscode.Uri {
    const absolute = path.startsWith("/") ? path : `/${path.replaceAll("\\", "/")}`;
    const uri = vscode.Uri.from({ scheme, path: absolute, query: keys.join(",") });
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
    return uri;
  }
}
