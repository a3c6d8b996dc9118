/** Which Python is used, decided without the editor, so that it can be tested without one. */

export interface Interpreter {
  readonly path: string;
  /** For messages: "selected by the Python extension". */
  readonly chosenBy: string;
}

export interface InterpreterSource {
  readonly chosenBy: string;
  /** undefined: it has no opinion. */
  find(): Promise<string | undefined>;
}

/** The first source that names one. A source that fails or does not answer in time is passed over. */
export async function choose(
  sources: readonly InterpreterSource[],
  patienceMs: number,
  complain: (sentence: string) => void,
): Promise<Interpreter | undefined> {
  for (const source of sources) {
    try {
      const path = await within(source.find(), patienceMs);
      if (path !== undefined && path !== "") return { path, chosenBy: source.chosenBy };
    } catch (error) {
      complain(`the interpreter ${source.chosenBy} could not be asked for: ${String(error)}`);
    }
  }
  return undefined;
}

async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** "~/env/bin/python" and "${workspaceFolder}/.venv/bin/python" as paths. */
export function expand(text: string, home: string, folder: string | undefined): string {
  const trimmed = text.trim();
  const withHome = /^~(?=$|[/\\])/.test(trimmed) ? home + trimmed.slice(1) : trimmed;
  return folder === undefined ? withHome : withHome.replaceAll("${workspaceFolder}", folder);
}

/** The first of these commands that is on the path. */
export function onPath(
  names: readonly string[],
  path: string,
  delimiter: string,
  isExecutable: (file: string) => boolean,
): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  for (const name of names) {
    for (const folder of folders) {
      const file = `${folder.replace(/[/\\]$/, "")}/${name}`;
      if (isExecutable(file)) return file;
    }
  }
  return undefined;
}
