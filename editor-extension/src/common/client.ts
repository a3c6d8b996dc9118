import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

/** What a person has asked for and did not get; the server's error says why in a sentence. */
const ASKED = /codeAction\/resolve|workspace\/executeCommand/;

/** Shows sentences for people where the library would show its own messages about connections. */
export class Client extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false); // the status item says why the server does not run
    if (ASKED.test(message) && data instanceof Error) void vscode.window.showWarningMessage(`mugraph: ${data.message}`);
  }
}
