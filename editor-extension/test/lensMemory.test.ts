import { expect, test } from "vitest";
import { place } from "../src/common/lensMemory";

const put = (text: string, remembered: { line: number; text: string; lens: string }[]) => {
  const lines = text.split("\n");
  return place(remembered, lines.length, (line) => lines[line] ?? "");
};

test("lenses follow their line when lines come in above", () => {
  const kept = [{ line: 1, text: "def f(x):", lens: "1.8×" }];
  expect(put("import torch\ndef f(x):\n  return x", kept)).toEqual([{ line: 1, lens: "1.8×" }]);
  expect(put("import torch\n\n\ndef f(x):\n  return x", kept)).toEqual([{ line: 3, lens: "1.8×" }]);
});

test("the nearest of equal lines is taken, and none where the line is gone", () => {
  const kept = [{ line: 4, text: "    def forward(self, x):", lens: "second" }];
  const text = "class A:\n    def forward(self, x):\n        pass\nclass B:\n\n    def forward(self, x):\n        pass";
  expect(put(text, kept)).toEqual([{ line: 5, lens: "second" }]);
  expect(put("class A:\n    pass", kept)).toEqual([]);
});
