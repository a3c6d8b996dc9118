import { readFileSync, readdirSync, readlinkSync } from "node:fs";

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** All processes below this one, read from /proc. */
export function below(ancestor: number): Process[] {
  const every = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (read(Number(name)) ?? []) : []));
  const found: Process[] = [];
  let parents = new Set([ancestor]);
  while (parents.size > 0) {
    const children = every.filter((process) => parents.has(process.parent));
    found.push(...children);
    parents = new Set(children.map((process) => process.pid));
  }
  return found;
}

export function isAlive(pid: number): boolean {
  const state = field(pid, 0);
  return state !== undefined && state !== "Z";
}

/** Internet sockets that these processes hold, as lines of /proc/net. */
export function internetSockets(pids: readonly number[]): string[] {
  const inodes = new Set(pids.flatMap(socketsOf));
  return ["tcp", "tcp6", "udp", "udp6"].flatMap((kind) => {
    const lines = readFileSync(`/proc/net/${kind}`, "utf8").trim().split("\n").slice(1);
    return lines.filter((line) => inodes.has(line.trim().split(/\s+/)[9] ?? "")).map((line) => `${kind} ${line.trim()}`);
  });
}

function socketsOf(pid: number): string[] {
  try {
    const folder = `/proc/${String(pid)}/fd`;
    return readdirSync(folder).flatMap((name) => /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${name}`))?.[1] ?? []);
  } catch {
    return []; // it ended meanwhile
  }
}

function read(pid: number): Process | undefined {
  const parent = field(pid, 1);
  if (parent === undefined) return undefined;
  try {
    const command = readFileSync(`/proc/${String(pid)}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, parent: Number(parent), command };
  } catch {
    return undefined; // it ended meanwhile
  }
}

/** Of /proc/PID/stat, counted from the state, which comes after the name in parentheses. */
function field(pid: number, index: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[index];
  } catch {
    return undefined;
  }
}
