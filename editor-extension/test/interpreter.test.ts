import { expect, test } from "vitest";
import { choose, expand, onPath, type InterpreterSource } from "../src/common/interpreter";

const source = (chosenBy: string, answer: string | undefined | Error | null): InterpreterSource => ({
  chosenBy,
  find: () =>
    answer === null
      ? new Promise(() => undefined)
      : answer instanceof Error
        ? Promise.reject(answer)
        : Promise.resolve(answer),
});

test("the first source with an answer decides, and is named", async () => {
  const found = await choose([source("a", undefined), source("b", "/b/python"), source("c", "/c/python")], 50, () => {
    throw new Error("nothing to complain of");
  });
  expect(found).toEqual({ path: "/b/python", chosenBy: "b" });
});

test("a source that fails or is silent is passed over with a word about it", async () => {
  const complaints: string[] = [];
  const sources = [source("broken", new Error("oops")), source("silent", null), source("path", "/usr/bin/python3")];
  const found = await choose(sources, 20, (sentence) => complaints.push(sentence));
  expect(found?.path).toBe("/usr/bin/python3");
  expect(complaints).toHaveLength(2);
  expect(complaints[0]).toContain("oops");
  expect(complaints[1]).toContain("20 ms");
});

test("no Python anywhere is no answer", async () => {
  expect(await choose([source("a", ""), source("b", undefined)], 50, () => undefined)).toBeUndefined();
});

test("home and workspace folder in the setting", () => {
  expect(expand(" ~/env/bin/python ", "/home/me", undefined)).toBe("/home/me/env/bin/python");
  expect(expand("${workspaceFolder}/.venv/bin/python", "/home/me", "/w")).toBe("/w/.venv/bin/python");
  expect(expand("~other/python", "/home/me", "/w")).toBe("~other/python");
});

test("the preferred name wins over the order of the path", () => {
  const there = new Set(["/a/python", "/b/python3"]);
  expect(onPath(["python3", "python"], "/a:/b/", ":", (file) => there.has(file))).toBe("/b/python3");
  expect(onPath(["python3"], "/a", ":", (file) => there.has(file))).toBeUndefined();
});
