import { expect, test } from "vitest";
import { changedSince, versionsOf } from "../src/common/versions";

const at = (versions: Record<string, number>) =>
  versionsOf(Object.entries(versions).map(([uri, version]) => ({ uri, version })));

test("only edited documents that moved on count", () => {
  const before = at({ "file:///a.py": 3, "file:///b.py": 1 });
  expect(changedSince(before, at({ "file:///a.py": 3, "file:///b.py": 2 }), ["file:///a.py"])).toEqual([]);
  expect(changedSince(before, at({ "file:///a.py": 4, "file:///b.py": 1 }), ["file:///a.py"])).toEqual(["file:///a.py"]);
});

test("a document that was closed meanwhile counts, a file that is created does not", () => {
  const before = at({ "file:///a.py": 3 });
  expect(changedSince(before, at({}), ["file:///a.py", "file:///a_mugraph.py"])).toEqual(["file:///a.py"]);
});
