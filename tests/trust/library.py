"""Runs a library kernel: the call as it is written, by PyTorch, against what its block graph says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tests.trust.interpreter import run_block
from tests.trust.memory import Buffer, Json, Wrong, shape_of
from tests.trust.numbers import close_to
from tests.trust.reference import SETS, Interface


def run_library(kernel: Json, memory: Mapping[str, Buffer], sizes: Mapping[str, int]) -> None:
    """Raises Wrong."""
    block = kernel["block"]
    known = {**block["sizes"], **{axis: n for axis, n in sizes.items() if axis in block["sizes"]}}
    loads = {op["tensor"] for op in block["ops"] if op["kind"] == "load"}
    stores = {op["tensor"] for op in block["ops"] if op["kind"] == "store"}
    if loads != set(kernel["inputs"]) or stores != set(kernel["outputs"]) or len(stores) != 1 or block["loops"]:
        raise Wrong(f"{kernel['name']} reads or writes other tensors than it says")
    tensors = {tensor["name"]: tensor for tensor in block["tensors"]}
    (out,) = (tensors[name] for name in stores)
    run_block(block, {"grid": [], "loops": {}}, memory, sizes)
    shape = shape_of(out, known)
    places = Interface(out["dtype"], shape, tuple(out["strides"])).places()
    said = memory[out["name"]].data[:, places]
    for number in range(len(SETS)):
        given: dict[str, Any] = {}
        for name in loads:
            layout = Interface("", shape_of(tensors[name], known), tuple(tensors[name]["strides"]))
            given[name] = torch.from_numpy(memory[name].data[number]).as_strided(layout.shape, layout.strides)
        try:
            computed = eval(kernel["call"], {"__builtins__": {}, "torch": torch}, given)
        except Exception as error:  # whatever PyTorch says of such a call, it is no kernel
            raise Wrong(f"{kernel['call']} cannot be called: {error}") from None
        if computed.numel() != said[number].size or not close_to(computed.numpy().reshape(shape), said[number]).all():
            raise Wrong(f"{kernel['call']} computes something else than it is said to")
