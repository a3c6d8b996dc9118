import { expect, test } from "vitest";
import { level } from "../src/common/logger";

test.each([
  ["2026-01-01 10:00:00 INFO engine in samples: running", "info"],
  ["WARNING: the client gave no configuration", "warning"],
  ["2026-01-01 10:00:00 ERROR something failed", "error"],
  ["DEBUG hover", "debug"],
  ["Traceback (most recent call last):", "error"],
  ["ModuleNotFoundError: No module named 'pygls'", "error"],
  ["plain words of a library", "info"],
])("%s is %s", (line, wanted) => {
  expect(level(line)).toBe(wanted);
});
