import { expect, test } from "vitest";
import { merge, place, type Remembered } from "../src/common/lensMemory";

const at = (line: number, text: string, lens: string, isResult = true): Remembered<string> => ({ line, text, lens, isResult });
const put = (text: string, remembered: Remembered<string>[]) => {
  const lines = text.split("\n");
  return place(remembered, lines.length, (line) => lines[line] ?? "").map(({ line, lens }) => ({ line, lens }));
};

test("lenses follow their line when lines come in above", () => {
  const kept = [at(1, "def f(x):", "1.8×")];
  expect(put("import torch\ndef f(x):\n  return x", kept)).toEqual([{ line: 1, lens: "1.8×" }]);
  expect(put("import torch\n\n\ndef f(x):\n  return x", kept)).toEqual([{ line: 3, lens: "1.8×" }]);
});

test("the nearest of equal lines is taken, and none where the line is gone", () => {
  const kept = [at(4, "    def forward(self, x):", "second")];
  const text = "class A:\n    def forward(self, x):\n        pass\nclass B:\n\n    def forward(self, x):\n        pass";
  expect(put(text, kept)).toEqual([{ line: 5, lens: "second" }]);
  expect(put("class A:\n    pass", kept)).toEqual([]);
});

test("a search under way keeps the result before it, where the line has gone to", () => {
  const before = [at(1, "def f(x):", "1.8×"), at(5, "def g(x):", "searching…", false)];
  const now = [at(2, "def f(x):", "searching…", false), at(6, "def g(x):", "as good", true)];
  expect(merge(before, now)).toEqual([at(2, "def f(x):", "1.8×"), at(6, "def g(x):", "as good")]);
  expect(merge([], now)[0]?.isResult).toBe(false);
});
