"""Thread graphs: operators of a block graph that run as one, which the document says a second time."""

from __future__ import annotations

from tests.trust.memory import Json

_COMPUTING = ("kind", "inputs", "axes", "over", "tensor", "value", "fn", "rows", "columns")


def thread_violation(kernel: Json) -> str:
    """Why the thread graphs of a kernel do not fit its block graph; "" where they do.

    A thread graph is named after its last operator, reads what it is said to read, in dependency order, and leaves one
    value: another one that is used outside of it would be lost in registers.
    """
    block_ops = {op["name"]: op for op in kernel["block"]["ops"]} if kernel["block"] else {}
    for thread in kernel.get("threads", ()):
        ops = thread["ops"]
        if not ops or thread["name"] != ops[-1]["name"]:
            return f"thread graph {thread['name']} does not leave {thread['name']}"
        inside = [op["name"] for op in ops]
        if len(set(inside)) != len(inside) or not set(inside) <= block_ops.keys():
            return f"thread graph {thread['name']} has operators that the block graph has not"
        constants = {name for name, op in block_ops.items() if op["kind"] == "const"}
        reads = {name for op in ops for name in op["inputs"]} - set(inside)
        if reads - constants != set(thread["inputs"]) - constants:
            return f"thread graph {thread['name']} reads {sorted(reads)}, not {sorted(thread['inputs'])}"
        for number, op in enumerate(ops):
            if set(op["inputs"]) & set(inside[number:]):
                return f"thread graph {thread['name']} uses {op['inputs']} before they are there"
        lost = set(inside) - constants - {thread["name"]}
        for op in block_ops.values():
            if op["name"] not in inside and lost & set(op["inputs"]):
                return f"{op['name']} uses what stays in the registers of thread graph {thread['name']}"
    return ""


def run_by_threads(graph: Json) -> Json:
    """The graph with each block's operators as its thread graphs have them; the same object where they agree."""
    kernels: list[Json] = []
    changed = False
    for kernel in graph["kernels"]:
        said = {op["name"]: op for thread in kernel.get("threads", ()) for op in thread["ops"]}
        ops = [said.get(op["name"], op) for op in kernel["block"]["ops"]] if kernel["block"] else []
        if any(one[key] != two[key] for one, two in zip(ops, (kernel["block"] or {}).get("ops", ()), strict=True)
               for key in _COMPUTING):  # fmt: skip
            changed = True
            kernels.append({**kernel, "block": {**kernel["block"], "ops": ops}})
        else:
            kernels.append(kernel)
    return {**graph, "kernels": kernels} if changed else graph
