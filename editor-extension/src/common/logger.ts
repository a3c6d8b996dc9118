import * as readline from "node:readline";
import type { Readable } from "node:stream";
import type { LogOutputChannel } from "vscode";

const KEPT = 30;

/** The server's standard error: to the output channel, and its last lines kept, which say why a server ended. */
export class ServerOutput {
  private lines: string[] = [];

  constructor(private readonly channel: LogOutputChannel) {}

  get last(): readonly string[] {
    return this.lines;
  }

  forget(): void {
    this.lines = [];
  }

  read(stream: Readable): void {
    const reader = readline.createInterface({ input: stream });
    reader.on("line", (line) => {
      this.lines = [...this.lines.slice(1 - KEPT), line];
      this.write(line);
    });
  }

  private write(line: string): void {
    switch (level(line)) {
      case "error":
        this.channel.error(line);
        break;
      case "warning":
        this.channel.warn(line);
        break;
      case "debug":
        this.channel.debug(line);
        break;
      case "info":
        this.channel.info(line);
    }
  }
}

/** Without it every line of a log would be shown as an error. */
export function level(line: string): "error" | "warning" | "info" | "debug" {
  const found = /\b(CRITICAL|ERROR|WARNING|INFO|DEBUG)\b/.exec(line.slice(0, 80))?.[1];
  if (found === "CRITICAL" || found === "ERROR" || /^(Traceback|\w*Error:|\S+: error:)/.test(line)) return "error";
  if (found === "WARNING") return "warning";
  return found === "DEBUG" ? "debug" : "info";
}
