import { expect, test } from "vitest";
import { Serial } from "../src/common/serial";

const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 5));

test("one task at a time, in the order they were asked for", async () => {
  const serial = new Serial();
  const seen: string[] = [];
  const task = (name: string) =>
    serial.run(name, async () => {
      seen.push(`${name} begins`);
      await pause();
      seen.push(`${name} ends`);
    });
  await Promise.all([task("start"), task("stop")]);
  expect(seen).toEqual(["start begins", "start ends", "stop begins", "stop ends"]);
});

test("tasks of one name that wait are one; the one that runs already is another", async () => {
  const serial = new Serial();
  let runs = 0;
  const restart = () =>
    serial.run("restart", async () => {
      runs++;
      await pause();
    });
  const first = restart();
  await pause();
  await Promise.all([first, restart(), restart(), restart()]);
  expect(runs).toBe(2);
});

test("a task that fails tells who asked for it, and the next one runs", async () => {
  const serial = new Serial();
  const failing = serial.run("a", () => Promise.reject(new Error("no")));
  let ran = false;
  const next = serial.run("b", () => {
    ran = true;
    return Promise.resolve();
  });
  await expect(failing).rejects.toThrow("no");
  await next;
  expect(ran).toBe(true);
});
