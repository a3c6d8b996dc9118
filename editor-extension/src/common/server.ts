import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  RevealOutputChannelOn,
  State,
  type LanguageClientOptions,
  type Middleware,
} from "vscode-languageclient/node";
import { Client } from "./client";
import { Crashes } from "./crashes";
import type { Interpreter } from "./interpreter";
import { level, ServerOutput } from "./logger";
import { probe } from "./probe";
import { CLIENT_COMMANDS, type ServerStatus } from "./protocol";
import { Serial } from "./serial";
import { theme } from "./settings";
import type { Phase } from "./statusText";

const STOP_MS = 3000;
const SELECTOR = [
  { scheme: "file", language: "python" },
  { scheme: "untitled", language: "python" },
  { scheme: "vscode-notebook-cell", language: "python" },
];

export interface ServerParts {
  readonly log: vscode.LogOutputChannel;
  /** A folder without Python files: Python imports from where it is started. */
  readonly cwd: string;
  readonly middleware: Middleware;
  interpreter(): Promise<Interpreter | undefined>;
}

/** The language server's life. Everything that starts or stops it goes through one queue. */
export class Server implements vscode.Disposable {
  private readonly serial = new Serial();
  private readonly crashes = new Crashes();
  private readonly phaseChanged = new vscode.EventEmitter<Phase>();
  private readonly statusChanged = new vscode.EventEmitter<ServerStatus>();
  private readonly searchChanged = new vscode.EventEmitter<vscode.Uri>();
  private readonly output: ServerOutput;
  private running: Client | undefined;
  private interpreter: Interpreter | undefined;
  private again: NodeJS.Timeout | undefined;
  private disposed = false;
  phase: Phase = { kind: "off" };
  status: ServerStatus | undefined;
  readonly onPhase = this.phaseChanged.event;
  readonly onStatus = this.statusChanged.event;
  /** The candidates of a region in this document are others now. */
  readonly onSearch = this.searchChanged.event;

  constructor(private readonly parts: ServerParts) {
    this.output = new ServerOutput(parts.log);
  }

  /** While it runs. */
  get client(): Client | undefined {
    return this.running?.state === State.Running ? this.running : undefined;
  }

  /** Starts it, or starts another one where another interpreter is selected now; else leaves it alone. */
  refresh(): Promise<void> {
    return this.serial.run("refresh", () => this.begin(false));
  }

  /** A person asked: whatever went wrong before is forgiven. */
  restart(): Promise<void> {
    return this.serial.run("restart", () => {
      this.crashes.forgive();
      return this.begin(true);
    });
  }

  stop(): Promise<void> {
    return this.serial.run("stop", () => this.end({ kind: "off" }));
  }

  dispose(): void {
    this.disposed = true;
    clearTimeout(this.again);
    this.phaseChanged.dispose();
    this.statusChanged.dispose();
    this.searchChanged.dispose();
  }

  private async begin(evenIfSame: boolean): Promise<void> {
    if (this.disposed) return;
    clearTimeout(this.again);
    if (!vscode.workspace.isTrusted) return this.end({ kind: "untrusted" });
    const found = await this.parts.interpreter();
    if (!evenIfSame && this.client !== undefined && found?.path === this.interpreter?.path) return;
    this.interpreter = found;
    if (found === undefined) return this.end({ kind: "no-python" });
    await this.end({ kind: "starting", python: found.path });
    const answer = await probe(found.path, this.parts.cwd);
    const { path: python, chosenBy } = found;
    if (answer.kind === "unfit") this.say({ kind: "unfit", python, chosenBy, why: answer.why });
    else if (answer.kind === "missing") this.say({ kind: "missing", python, chosenBy });
    else await this.launch(python, answer.mugraph);
  }

  private async launch(python: string, version: string): Promise<void> {
    this.parts.log.info(`starting the language server of mugraph ${version} with ${python}`);
    this.output.forget();
    const client: Client = new Client(
      "mugraph",
      "mugraph",
      { command: python, args: ["-m", "mugraph_server", "--stdio"], options: { cwd: this.parts.cwd } },
      this.options(() => this.closed(client, python)),
    );
    client.onNotification("mugraph/status", (status: ServerStatus) => {
      if (this.running !== client) return;
      this.status = status;
      this.statusChanged.fire(status);
    });
    client.onNotification("mugraph/searchChanged", ({ uri }: { uri: string }) => {
      if (this.running === client) this.searchChanged.fire(client.protocol2CodeConverter.asUri(uri));
    });
    this.running = client;
    try {
      await client.start();
    } catch (error) {
      this.parts.log.error(`the language server did not start: ${String(error)}`);
      this.failed(client, python, `The language server ended before it was ready${this.lastWords()}`);
      return;
    }
    this.say({ kind: "running", python, version });
  }

  private options(closed: () => void): LanguageClientOptions {
    const { log, middleware } = this.parts;
    return {
      documentSelector: SELECTOR,
      outputChannel: log,
      traceOutputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      diagnosticCollectionName: "mugraph",
      markdown: { isTrusted: { enabledCommands: CLIENT_COMMANDS }, supportHtml: true },
      initializationOptions: () => ({ theme: theme(), trusted: true, commands: [...CLIENT_COMMANDS] }),
      // The reason is shown once, by the status item; the client's own message would repeat it.
      initializationFailedHandler: () => false,
      stdioOptions: {
        stdout: () => undefined,
        stderr: (stream) => this.output.read(stream),
      },
      middleware,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        // Never restarted by the client, which would neither wait nor go through the queue.
        closed: () => {
          closed();
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
  }

  /** It ended by itself. While it was starting, `launch` hears of that. */
  private closed(client: Client, python: string): void {
    if (this.running !== client || this.phase.kind !== "running") return;
    const why = `The language server ended unexpectedly${this.lastWords()}`;
    this.parts.log.warn(why);
    this.failed(client, python, why);
  }

  private failed(client: Client, python: string, why: string): void {
    if (this.running !== client) return;
    this.running = undefined;
    const wait = this.crashes.next();
    if (wait === undefined || this.disposed) {
      this.say({ kind: "failed", python, why: `${why}. It is not started again until you restart it` });
      return;
    }
    this.say({ kind: "restarting", python, why });
    this.again = setTimeout(() => void this.serial.run("again", () => this.begin(true)), wait);
  }

  /** Of its standard error, where they may say why it ended. */
  private lastWords(): string {
    const last = this.output.last.findLast((line) => level(line) === "error")?.trim();
    return last === undefined ? "" : `: ${last}`;
  }

  private async end(phase: Phase): Promise<void> {
    const client = this.running;
    this.running = undefined;
    this.status = undefined;
    this.say(phase);
    if (client === undefined) return;
    try {
      await client.dispose(STOP_MS);
    } catch (error) {
      this.parts.log.warn(`the language server did not stop as it should: ${String(error)}`);
    }
  }

  private say(phase: Phase): void {
    this.phase = phase;
    if (phase.kind !== "running") this.status = undefined;
    if (!this.disposed) this.phaseChanged.fire(phase);
  }
}
