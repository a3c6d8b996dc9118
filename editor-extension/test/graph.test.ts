import { expect, test } from "vitest";
import { describe as said, placesIn, readNode } from "../src/graph/nodes";
import { innermost, type Span } from "../src/graph/places";

const tensor = (name: string, source: string) => readNode(source, "tensor", name);

test("titles of the drawing", () => {
  expect(readNode("dot[m, n] = dot(x_norm_weight, linear_weight, over=k)", "matmul", "matmul")).toEqual({
    kind: "operator",
    name: "dot",
    axes: "m, n",
    operator: "dot",
    operands: ["x_norm_weight", "linear_weight"],
    over: "k",
  });
  expect(tensor("norm_weight", "self.norm.weight")).toMatchObject({ kind: "tensor", source: "self.norm.weight", output: false });
  expect(readNode("torch.cat((a, b), dim=0)", "kernel", "cat")).toEqual({ kind: "call", call: "torch.cat((a, b), dim=0)" });
});

test("a box names the places of the code it comes from", () => {
  expect(placesIn("0 12")).toEqual([0, 12]);
  expect(placesIn(null)).toEqual([]);
  expect(placesIn("")).toEqual([]);
});

test("the cursor is about the innermost call around it", () => {
  const span = (start: number, end: number, line = 4): Span => ({ start: { line, character: start }, end: { line, character: end } });
  const spans = [span(27, 39), span(15, 40), null, span(27, 39), span(0, 80, 9)]; // self.linear(self.norm(x))
  expect(innermost({ line: 4, character: 30 }, spans)).toEqual([0, 3]);
  expect(innermost({ line: 4, character: 18 }, spans)).toEqual([1]);
  expect(innermost({ line: 4, character: 39 }, spans)).toEqual([0, 3]);
  expect(innermost({ line: 5, character: 0 }, spans)).toEqual([]);
});

test("a node in words", () => {
  expect(said(readNode("acc[m, n] = accum(dot, over=k)", "reduce", "accum k"))).toEqual({
    name: "acc",
    what: "accumulated through the loop over k: dot with axes m, n",
  });
  expect(said(tensor("w", "self.linear.weight")).what).toContain("self.linear.weight");
  expect(said(readNode("ss[m] = sum(xx, over=k)", "reduce", "Σ k"), "z").what).toBe(
    "sum over k: xx with axes m; in registers, in the thread graph that computes z",
  );
});
