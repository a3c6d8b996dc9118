"""Names for results of PyTorch calls that the user's code has not named: by what is computed, not by number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mugraph.ir.calls import operands
from mugraph.ir.region import Call, TensorInfo
from mugraph.ops.algebra.registry import canonical, entry_for

_LONGEST = 24
"""A name of more characters is left out of the names that are made of it."""

_NOUNS: Mapping[str, str] = {
    "add": "added", "radd": "added", "iadd": "added", "sub": "difference", "rsub": "difference", "mul": "product",
    "rmul": "product", "div": "quotient", "truediv": "quotient", "rtruediv": "quotient", "sqrt": "root",
    "rsqrt": "inv_root", "reciprocal": "inverse", "mean": "mean", "sum": "total", "var": "variance", "cat": "joined",
    "concat": "joined", "stack": "stacked", "masked_fill": "masked", "where": "chosen", "einsum": "contracted",
    "scaled_dot_product_attention": "attended", "addmm": "affine", "baddbmm": "affine", "arange": "positions",
    "amax": "largest", "amin": "smallest", "cumsum": "running_total", "tril": "lower", "triu": "upper",
}  # fmt: skip
"""Names that need no operand's."""

_SUFFIXES: Mapping[str, str] = {
    "transpose": "t", "permute": "t", "T": "t", "mT": "t", "swapaxes": "t", "movedim": "t", "view": "view",
    "reshape": "view", "flatten": "view", "unflatten": "view", "unsqueeze": "view", "squeeze": "view",
    "expand": "repeated", "expand_as": "repeated", "repeat": "repeated", "repeat_interleave": "repeated",
    "contiguous": "copy", "clone": "copy", "getitem": "part", "narrow": "part", "select": "part", "chunk": "part",
    "split": "part", "unbind": "part", "neg": "negated", "square": "squared", "normalize": "normed",
    "layer_norm": "normed", "rms_norm": "normed", "group_norm": "normed", "batch_norm": "normed",
}  # fmt: skip
"""Names that follow the first operand's."""

_PRODUCTS = frozenset({"matmul", "mm", "bmm", "mv", "rmatmul"})
_CASTS = frozenset({"to", "float", "half", "bfloat16", "double", "type", "type_as"})


def stem(call: Call, names: Mapping[int, str], paths: Mapping[int, str], values: Mapping[int, TensorInfo]) -> str:
    """A name for what the call computes; it need not be unique.

    names: of the values known so far. paths: expressions of the live-ins, "self.mlp.gate.weight"
    """
    kind = function_name(call)
    read = [names[value] for value in operands(call) if value in names]
    entry = entry_for(call.target)
    if entry is not None and "weight" in entry.parameters:  # a module's own: the result goes by the module's name
        modules = [_module(paths[value]) for value in operands(call) if value in paths]
        owner = next((module for module in modules if module), "")
        if owner:
            return owner
    if kind in _PRODUCTS or kind == "linear":
        return product_name(read)
    if kind in _CASTS and call.outputs:
        return after(read, values[call.outputs[0]].dtype)
    if kind == "pow":
        return after(read, "squared" if call.args[1:] == (2,) else "power")
    if kind in _NOUNS:
        return _NOUNS[kind]
    moved = "view" if entry is not None and entry.shape_only else ""
    return after(read, _SUFFIXES.get(kind, moved or kind))


def function_name(call: Call) -> str:
    """ "softmax" of "torch.nn.functional.softmax", "T" of "Tensor.T.__get__", "mul" of "Tensor.__mul__"."""
    parts = [part for part in canonical(call.target).split(".") if part not in ("__get__", "__set__")]
    return parts[-1].strip("_")


def product_name(operand_names: Sequence[str]) -> str:
    """ "qk" of the product of `q` and `k_t`, as it is written on blackboards; else "product"."""
    roots = [re.sub(r"(_\d+)?(_t)?$", "", name) for name in operand_names[:2]]
    return "".join(roots) if len(roots) == 2 and all(len(root) == 1 for root in roots) else "product"


def after(operand_names: Sequence[str], suffix: str) -> str:
    """The name of the first operand with what was done to it: "scores" -> "scores_exp". It is added once: "k_t" ->
    "k_t"."""
    first = operand_names[0] if operand_names else ""
    if not first or len(first) > _LONGEST:
        return suffix if suffix.isidentifier() else "value"
    return first if first.endswith(f"_{suffix}") else f"{first}_{suffix}"


def _module(path: str) -> str:
    """ "gate" of "self.mlp.gate.weight"."""
    parts = path.split(".")
    owner = parts[-2] if len(parts) > 2 and parts[-1] in ("weight", "bias") else ""
    return owner if owner.isidentifier() else ""
