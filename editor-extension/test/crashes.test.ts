import { expect, test } from "vitest";
import { Crashes } from "../src/common/crashes";

test("waits twice as long each time, and gives up at the fifth end", () => {
  const crashes = new Crashes(() => 0);
  expect([1, 2, 3, 4, 5, 6].map(() => crashes.next())).toEqual([250, 500, 1000, 2000, undefined, undefined]);
});

test("ends more than three minutes apart are not added up", () => {
  let now = 0;
  const crashes = new Crashes(() => now);
  for (let hour = 0; hour < 10; hour++) {
    now = hour * 3_600_000;
    expect(crashes.next()).toBe(250);
  }
});

test("a person who restarts it begins anew", () => {
  const crashes = new Crashes(() => 0);
  for (let count = 0; count < 5; count++) crashes.next();
  crashes.forgive();
  expect(crashes.next()).toBe(250);
});
