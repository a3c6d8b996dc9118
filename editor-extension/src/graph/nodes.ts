/** What the drawing's boxes stand for: read from the title each of them has. */

export type GraphNode =
  | { readonly kind: "tensor"; readonly name: string; readonly source: string; readonly output: boolean }
  | {
      readonly kind: "operator";
      readonly name: string;
      readonly axes: string;
      readonly operator: string;
      readonly operands: readonly string[];
      readonly over: string;
    }
  | { readonly kind: "call"; readonly call: string };

/** "acc[m, n] = accum(dot, over=k)"; a tensor's title is the expression it comes from. */
const OPERATOR = /^(\w+)(?:\[([^\]]*)\])? = (\w+)\((.*)\)$/;

export function readNode(title: string, look: string, name: string): GraphNode {
  const found = OPERATOR.exec(title);
  if (look === "tensor" || look === "output") return { kind: "tensor", name, source: title, output: look === "output" };
  if (found === null) return { kind: "call", call: title };
  const [, value = "", axes = "", operator = "", given = ""] = found;
  const parts = given.split(",").map((part) => part.trim());
  return {
    kind: "operator",
    name: value,
    axes,
    operator,
    operands: parts.filter((part) => part !== "" && !part.includes("=")),
    over: parts.find((part) => part.startsWith("over="))?.slice("over=".length) ?? "",
  };
}

/** The numbers of `data-source`: which places of the user's code a box comes from. */
export function placesIn(attribute: string | null): number[] {
  return (attribute ?? "").split(" ").flatMap((word) => (/^\d+$/.test(word) ? [Number(word)] : []));
}

const OPERATORS: Readonly<Record<string, string>> = {
  dot: "matrix product",
  mul: "product",
  add: "sum of two",
  sub: "difference",
  div: "quotient",
  sum: "sum",
  max: "maximum",
  amax: "maximum",
  accum: "accumulated through the loop",
  exp: "exponential",
  sqrt: "square root",
  silu: "SiLU",
  load: "read from device memory",
  store: "written to device memory",
};

/** A line about a node, for the panel beside the graph. `thread` names the thread graph it is in, if any. */
export function describe(node: GraphNode, thread: string | null = null): { name: string; what: string } {
  if (node.kind === "call") return { name: "PyTorch's own kernel", what: node.call };
  if (node.kind === "tensor") {
    const from = node.source === node.name ? "" : `, in your code ${node.source}`;
    return { name: node.name, what: `${node.output ? "output" : "input"} in device memory${from}` };
  }
  const over = node.over === "" ? "" : ` over ${node.over}`;
  const operands = node.operands.length === 0 ? "" : `: ${node.operands.join(", ")}`;
  const axes = node.axes === "" ? "" : ` with axes ${node.axes}`;
  const registers = thread === null ? "" : `; in registers, in the thread graph that computes ${thread}`;
  return { name: node.name, what: `${OPERATORS[node.operator] ?? node.operator}${over}${operands}${axes}${registers}` };
}
