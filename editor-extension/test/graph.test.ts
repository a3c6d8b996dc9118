import { expect, test } from "vitest";
import { describe as said, readNode, sourcesOf } from "../src/graph/nodes";
import { expressionsAt, placesOf } from "../src/graph/places";

const tensor = (name: string, source: string) => readNode(source, "tensor", name);
const TEXT = "self.linear(self.norm(x)) + self.linear2(max_x)";

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

test("an operator leads to the tensors it reads itself", () => {
  const nodes = [tensor("x", "x"), tensor("linear_weight", "self.linear.weight"), readNode("out", "output", "out")];
  const dot = readNode("dot[m] = dot(x_norm, linear_weight, over=k)", "matmul", "");
  const divided = readNode("out[m] = div(acc, rms)", "op", "");
  expect(sourcesOf(dot, [...nodes, dot])).toEqual(["self.linear.weight"]);
  expect(sourcesOf(divided, [...nodes, divided])).toEqual([]);
});

test("a parameter is found where its module is called, and only there", () => {
  const found = placesOf("self.linear.weight", TEXT).map(({ start, end }) => TEXT.slice(start, end + 1));
  expect(found).toEqual(["self.linear("]);
  expect(placesOf("x", TEXT)).toHaveLength(1);
  expect(placesOf("self.other.weight", TEXT)).toEqual([]);
});

test("the cursor finds what it stands on", () => {
  const sources = ["x", "self.norm.weight", "self.linear.weight"];
  expect(expressionsAt(TEXT.indexOf("norm") + 1, sources, TEXT)).toEqual(["self.norm.weight"]);
  expect(expressionsAt(TEXT.indexOf("+"), sources, TEXT)).toEqual([]);
});

test("a node in words", () => {
  expect(said(readNode("acc[m, n] = accum(dot, over=k)", "reduce", "accum k"))).toEqual({
    name: "acc",
    what: "accumulated through the loop over k: dot with axes m, n",
  });
  expect(said(tensor("w", "self.linear.weight")).what).toContain("self.linear.weight");
});
