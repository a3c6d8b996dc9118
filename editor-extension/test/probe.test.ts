import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { probe, read } from "../src/common/probe";

const answer = (given: object) => JSON.stringify({ python: [3, 12, 1], mugraph: "0.1.0", found: true, pip: true, ...given });

test("what an interpreter answers", () => {
  expect(read(answer({}))).toEqual({ kind: "ready", mugraph: "0.1.0", python: "3.12.1" });
  expect(read(answer({ found: false, mugraph: "", pip: false }))).toEqual({ kind: "missing", pip: false, python: "3.12.1" });
  expect(read(answer({ python: [3, 10, 4] }))).toMatchObject({ kind: "unfit", why: expect.stringContaining("3.11") as string });
});

test("a site's greeting on standard output does not matter, anything else that is no answer does", () => {
  expect(read(`welcome\n${answer({})}\n`)).toMatchObject({ kind: "ready" });
  for (const out of ["", "hello", "[]", "null", "{}"]) expect(read(out)).toMatchObject({ kind: "unfit" });
});

test("a file that is not there, and one that is no Python", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mugraph-"));
  expect(await probe(join(folder, "nowhere"), folder)).toEqual({ kind: "unfit", why: "it does not exist" });
  const other = join(folder, "other");
  writeFileSync(other, "#!/bin/sh\necho 'wrong architecture' >&2\nexit 3\n");
  chmodSync(other, 0o755);
  expect(await probe(other, folder)).toEqual({ kind: "unfit", why: "wrong architecture" });
});

test("a real Python is asked without importing what it has", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mugraph-"));
  const found = await probe("python3", folder);
  expect(["ready", "missing", "unfit"]).toContain(found.kind);
  if (found.kind !== "unfit") expect(found.python).toMatch(/^3\.\d+\.\d+$/);
});
