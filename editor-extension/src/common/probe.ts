import { execFile, type ExecFileException } from "node:child_process";

export type Probe =
  | { readonly kind: "ready"; readonly mugraph: string; readonly python: string }
  | { readonly kind: "missing"; readonly pip: boolean; readonly python: string }
  | { readonly kind: "unfit"; readonly why: string };

const TOO_OLD = "mugraph needs Python 3.11 or newer";
const PATIENCE_MS = 20_000;
// Looks without importing: a broken installation must not be run by asking whether it is there.
const QUESTION = `
import importlib.util as u, json, sys
found = u.find_spec("mugraph_server") is not None and u.find_spec("mugraph") is not None
version = ""
if found:
    import importlib.metadata as m
    try: version = m.version("mugraph")
    except m.PackageNotFoundError: version = "unknown"
print(json.dumps({"python": list(sys.version_info[:3]), "mugraph": version, "found": found, "pip": u.find_spec("pip") is not None}))
`;

/** Can this Python run the server? cwd: a folder without Python files, which Python would import from first. */
export function probe(python: string, cwd: string): Promise<Probe> {
  return new Promise((resolve) => {
    execFile(python, ["-c", QUESTION], { cwd, timeout: PATIENCE_MS }, (error, out, err) => {
      resolve(error === null ? read(out) : { kind: "unfit", why: reason(error, err) });
    });
  });
}

export function read(out: string): Probe {
  const line = out.trim().split("\n").at(-1) ?? "";
  let answer: unknown;
  try {
    answer = JSON.parse(line);
  } catch {
    return { kind: "unfit", why: "it does not answer as Python does" };
  }
  if (!isAnswer(answer)) return { kind: "unfit", why: "it does not answer as Python does" };
  const [major = 0, minor = 0] = answer.python;
  const python = answer.python.join(".");
  if (major < 3 || (major === 3 && minor < 11)) return { kind: "unfit", why: `it is Python ${python}; ${TOO_OLD}` };
  return answer.found ? { kind: "ready", mugraph: answer.mugraph, python } : { kind: "missing", pip: answer.pip, python };
}

interface Answer {
  python: number[];
  mugraph: string;
  found: boolean;
  pip: boolean;
}

function isAnswer(given: unknown): given is Answer {
  if (typeof given !== "object" || given === null) return false;
  const { python, mugraph, found, pip } = given as Partial<Record<keyof Answer, unknown>>;
  return Array.isArray(python) && typeof mugraph === "string" && typeof found === "boolean" && typeof pip === "boolean";
}

function reason(error: ExecFileException, err: string): string {
  if (error.code === "ENOENT") return "it does not exist";
  if (error.code === "EACCES") return "it may not be run";
  if (error.killed === true) return "it does not answer";
  const last = err.trim().split("\n").at(-1);
  return last === undefined || last === "" ? "it ended with an error" : last;
}
