import * as vscode from "vscode";
import type { RegionData } from "../common/protocol";

/** A region as the document shows it: our diagnostics carry its place, its sentence and its key. */
export interface Region {
  readonly uri: vscode.Uri;
  readonly key: string;
  readonly state: string;
  readonly message: string;
  readonly range: vscode.Range;
}

export function regionsOf(uri: vscode.Uri): Region[] {
  return vscode.languages.getDiagnostics(uri).flatMap((diagnostic) => {
    const data = (diagnostic as { data?: Partial<RegionData> }).data;
    if (diagnostic.source !== "mugraph" || typeof data?.key !== "string") return [];
    const state = typeof diagnostic.code === "string" ? diagnostic.code : "";
    return [{ uri, key: data.key, state, message: diagnostic.message, range: diagnostic.range }];
  });
}

/** The region at the cursor, else the nearest one above it, else the first. */
export function regionNear(regions: readonly Region[], line: number): Region | undefined {
  const at = regions.find((region) => region.range.start.line <= line && line <= region.range.end.line);
  return at ?? regions.findLast((region) => region.range.start.line <= line) ?? regions[0];
}

/** The name of the function a line is in, for titles. */
export function functionAt(document: vscode.TextDocument, line: number): string {
  const names: string[] = [];
  let indent = Number.POSITIVE_INFINITY;
  for (let at = Math.min(line, document.lineCount - 1); at >= 0 && indent > 0; at--) {
    const text = document.lineAt(at).text;
    const found = /^(\s*)(?:async\s+def|def|class)\s+(\w+)/.exec(text);
    const width = /^\s*/.exec(text)?.[0].length ?? 0;
    if (found?.[2] !== undefined && width < indent) names.unshift(found[2]);
    if (text.trim() !== "" && width < indent) indent = width;
  }
  return names.join(".");
}
