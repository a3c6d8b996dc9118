import * as vscode from "vscode";
import type { Interpreter } from "./interpreter";
import type { Server } from "./server";
import { installFrom } from "./settings";

const INSTALL = "Install mugraph there";
const CHOOSE = "Choose another Python";

/** Says once for each interpreter that mugraph is missing there, with a button that installs it. */
export class Installer {
  private readonly told = new Set<string>();

  constructor(
    private readonly server: Server,
    private readonly interpreter: () => Promise<Interpreter | undefined>,
  ) {}

  async missing(python: string, chosenBy: string): Promise<void> {
    if (this.told.has(python)) return;
    this.told.add(python);
    const message = `mugraph is not installed in ${python} (${chosenBy}).`;
    const answer = await vscode.window.showWarningMessage(message, INSTALL, CHOOSE);
    if (answer === INSTALL) await this.install();
    else if (answer === CHOOSE) await selectInterpreter();
  }

  /** In a terminal, where a person sees what pip does; then the server starts. */
  async install(): Promise<void> {
    if (!vscode.workspace.isTrusted) {
      await vscode.commands.executeCommand("workbench.trust.manage");
      return;
    }
    const found = await this.interpreter();
    if (found === undefined) {
      await selectInterpreter();
      return;
    }
    const status = await run(found.path, ["-m", "pip", "install", installFrom()]);
    if (status === 0) {
      await this.server.restart();
      return;
    }
    void vscode.window.showErrorMessage(
      `mugraph could not be installed in ${found.path}: pip ended with ${String(status ?? "no status")}. The terminal says why.`,
    );
  }
}

/** The Python extension's own picker where it is there, else our setting. */
export async function selectInterpreter(): Promise<void> {
  const commands = await vscode.commands.getCommands(true);
  for (const command of ["python-envs.set", "python.setInterpreter"]) {
    if (commands.includes(command)) {
      await vscode.commands.executeCommand(command);
      return;
    }
  }
  await vscode.commands.executeCommand("workbench.action.openSettings", "mugraph.interpreter");
}

async function run(command: string, args: string[]): Promise<number | undefined> {
  const task = new vscode.Task(
    { type: "process" },
    vscode.TaskScope.Workspace,
    "Install mugraph",
    "mugraph",
    new vscode.ProcessExecution(command, args),
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated };
  const execution = await vscode.tasks.executeTask(task);
  return new Promise((resolve) => {
    const listener = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution !== execution) return;
      listener.dispose();
      resolve(event.exitCode);
    });
  });
}
