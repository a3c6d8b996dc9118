import * as vscode from "vscode";
import type { LanguageClientOptions, Middleware } from "vscode-languageclient/node";
import { changedSince, versionsOf } from "./versions";

export interface MiddlewareParts {
  /** The interpreter that stands for an empty setting, in this scope. */
  interpreter(scope: vscode.Uri | undefined): Promise<string | undefined>;
  remember(document: vscode.TextDocument, lenses: readonly vscode.CodeLens[]): void;
}

/** What is done to messages on their way between the editor and the server. */
export function middleware(parts: MiddlewareParts): Middleware & NonNullable<LanguageClientOptions["middleware"]> {
  return {
    provideCodeLenses: async (document, token, next) => {
      const lenses = (await next(document, token)) ?? null;
      if (lenses !== null && !token.isCancellationRequested) parts.remember(document, lenses);
      return lenses;
    },
    // The editor applies a code action's edit without comparing versions: what was typed while the edit was being
    // worked out would be overwritten in the wrong places.
    resolveCodeAction: async (action, token, next) => {
      if (action.command !== undefined) return next(action, token); // its edit comes from the server, with versions
      const before = versionsOf(openDocuments());
      const resolved = await next(action, token);
      // Without an edit the server has seen the change itself.
      const edited = resolved?.edit?.entries().map(([uri]) => uri.toString()) ?? [...before.keys()];
      const changed = changedSince(before, versionsOf(openDocuments()), edited);
      if (changed.length === 0) return resolved;
      void vscode.window.showWarningMessage(
        "mugraph: the file was changed while the kernel was being put in, so nothing was done. Try again.",
      );
      const nothing = resolved ?? action;
      nothing.edit = new vscode.WorkspaceEdit();
      return nothing;
    },
    workspace: {
      configuration: async (params, token, next) => {
        const answers = await next(params, token);
        if (!Array.isArray(answers)) return answers;
        return Promise.all(
          answers.map(async (answer: unknown, index) => {
            const item = params.items[index];
            if (item?.section !== "mugraph" || typeof answer !== "object" || answer === null) return answer;
            const scope = item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri);
            const interpreter = await parts.interpreter(scope ?? vscode.workspace.workspaceFolders?.[0]?.uri);
            return { ...answer, interpreter: interpreter ?? "" };
          }),
        );
      },
    },
  };
}

function openDocuments(): { uri: string; version: number }[] {
  const python = vscode.workspace.textDocuments.filter((document) => document.languageId === "python");
  return python.map((document) => ({ uri: document.uri.toString(), version: document.version }));
}
