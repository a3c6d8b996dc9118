import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { choose, expand, onPath, type Interpreter, type InterpreterSource } from "./interpreter";
import { interpreterSetting } from "./settings";

const PATIENCE_MS = 5000;

// What is used of the two extensions' interfaces. Either may be absent, or older or newer than these lines.
interface EnvironmentsApi {
  getEnvironment(scope: vscode.Uri | undefined): Promise<
    { execInfo?: { run?: { executable?: string }; activatedRun?: { executable?: string } } } | undefined
  >;
  onDidChangeEnvironment?: vscode.Event<unknown>;
}
interface PythonApi {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable?: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath?: vscode.Event<unknown>;
  };
}

const ENVIRONMENTS = "ms-python.vscode-python-envs";
const PYTHON = "ms-python.python";

/** Where the interpreter comes from: the setting, the environments extension, the Python extension, the path. */
export class Python implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[] = [this.changed];
  private readonly listened = new Set<string>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly log: vscode.LogOutputChannel) {
    this.disposables.push(vscode.extensions.onDidChange(() => this.changed.fire()));
  }

  find(scope: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    const folder = scope === undefined ? undefined : vscode.workspace.getWorkspaceFolder(scope)?.uri.fsPath;
    const sources: InterpreterSource[] = [
      {
        chosenBy: "from the setting mugraph.interpreter",
        find: () => {
          const set = expand(interpreterSetting(scope), os.homedir(), folder);
          return Promise.resolve(set === "" ? undefined : set);
        },
      },
      { chosenBy: "selected in the editor", find: () => this.fromEnvironments(scope) },
      { chosenBy: "selected by the Python extension", find: () => this.fromPython(scope) },
      { chosenBy: "on the path", find: () => Promise.resolve(fromPath()) },
    ];
    return choose(sources, PATIENCE_MS, (sentence) => this.log.warn(sentence));
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
  }

  private async fromEnvironments(scope: vscode.Uri | undefined): Promise<string | undefined> {
    const api = await this.exportsOf<EnvironmentsApi>(ENVIRONMENTS);
    if (typeof api?.getEnvironment !== "function") return undefined;
    this.listen(ENVIRONMENTS, api.onDidChangeEnvironment);
    const found = (await api.getEnvironment(scope))?.execInfo;
    return found?.activatedRun?.executable ?? found?.run?.executable;
  }

  private async fromPython(scope: vscode.Uri | undefined): Promise<string | undefined> {
    const environments = (await this.exportsOf<PythonApi>(PYTHON))?.environments;
    if (environments === undefined) return undefined;
    this.listen(PYTHON, environments.onDidChangeActiveEnvironmentPath);
    const active = environments.getActiveEnvironmentPath(scope);
    const resolved = await environments.resolveEnvironment(active);
    return resolved?.executable?.uri?.fsPath ?? active.path;
  }

  private async exportsOf<T>(id: string): Promise<T | undefined> {
    const extension = vscode.extensions.getExtension<T>(id);
    return extension === undefined ? undefined : extension.isActive ? extension.exports : await extension.activate();
  }

  private listen(id: string, event: vscode.Event<unknown> | undefined): void {
    if (event === undefined || this.listened.has(id)) return;
    this.listened.add(id);
    this.disposables.push(event(() => this.changed.fire()));
  }
}

function fromPath(): string | undefined {
  const names = process.platform === "win32" ? ["python3.exe", "python.exe"] : ["python3", "python"];
  return onPath(names, process.env.PATH ?? "", path.delimiter, (file) => {
    try {
      fs.accessSync(file, fs.constants.X_OK);
      return fs.statSync(file).isFile();
    } catch {
      return false;
    }
  });
}
