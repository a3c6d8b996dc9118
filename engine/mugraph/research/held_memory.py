"""`python -m mugraph.research.held_memory FILE ... [--target NAME] [--json FILE]`: bytes that a call of each region
holds at most, beside its inputs: the user's code, its kernels without memory planning, and its kernels as they are.

Nothing is computed: the functions run on tensors without memory. Each tensor counts from the call that makes it until
the last reference to it is gone. What a launcher allocates for itself is added while it runs, as its prepared form has
it: one buffer for what its kernels hand to one another. These are bytes that are asked for. What PyTorch's allocator
reserves is rounded up from that, and more where memory is in pieces.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mugraph.codegen.scratch_places import lifetimes_of
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.edit.names import operator_name
from mugraph.events import Done, RegionResult
from mugraph.ir.dtypes import ELEMENTS
from mugraph.ir.kernel import KernelSource
from mugraph.optimizer.storage import stored
from mugraph.options import Options
from mugraph.pipeline import run
from mugraph.plans.plan import RegionPlan
from mugraph.store import Store

MIB = 2**20


class Row(msgspec.Struct):
    """Bytes. kernels: that are launched; code: of the user's; apart: without memory planning; shared: with it"""

    file: str
    region: str
    kernels: int
    code: int
    apart: int
    shared: int


class Held(TorchDispatchMode):
    """scratch: operator -> bytes that it allocates for itself. most: of all that was held at once"""

    def __init__(self, scratch: Mapping[str, int]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.scratch = scratch
        self.most = 0
        self._known: set[int] = set()
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}

    def given(self, tensors: Iterable[torch.Tensor]) -> None:
        """What the function is given, which counts for nothing."""
        self.most = 0
        self._live.clear()
        self._known = {_place(one) for one in tensors}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._live = {key: (ref, size) for key, (ref, size) in self._live.items() if not ref.expired()}
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor) and (place := _place(one)) not in self._known:
                storage = one.untyped_storage()
                self._live[place] = StorageWeakRef(storage), storage.nbytes()
        own = self.scratch.get(str(func.name()).partition(".")[0], 0)
        self.most = max(self.most, own + sum(size for _, size in self._live.values()))
        return result


def _place(tensor: torch.Tensor) -> int:
    """Which memory it is of."""
    return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def rows_of(path: Path, options: Options, store: Store | None) -> list[Row]:
    """Of the regions that have kernels."""
    result = next(event.result for event in run(path, None, options, store=store) if isinstance(event, Done))
    for error in result.errors:
        print(f"{path}: {error}", file=sys.stderr)
    return [_row(path, one, one.plan) for one in result.regions if one.plan is not None and not one.plan.region.dynamic]


def _row(path: Path, result: RegionResult, plan: RegionPlan) -> Row:
    sources = result.sources
    return Row(
        str(path),
        plan.name,
        sum(len(source.kernels) for source in sources.values()),
        held(path, plan, sources, f"_{plan.name}_reference", {})[0],
        held_by_kernels(path, replace(plan, without=plan.without | {"memory"}), sources),
        held_by_kernels(path, replace(plan, without=plan.without - {"memory"}), sources),
    )


def held_by_kernels(path: Path, plan: RegionPlan, sources: Mapping[str, KernelSource]) -> int:
    """Bytes that a call of a plan's kernels holds at most, beside its inputs."""
    lifetimes = {name: lifetimes_of(source) for name, source in sources.items()}
    scratch = {name: sum(one.size for one in own) for name, (own, _) in lifetimes.items()}
    if "memory" not in plan.without:
        scratch = {name: stored(*both).shared.size for name, both in lifetimes.items()}
    return held(path, plan, sources, on_tensors(plan), scratch)[0]


def held(
    path: Path, plan: RegionPlan, sources: Mapping[str, KernelSource], function: str, scratch: Mapping[str, int]
) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Bytes that a call of a function of the plan's module holds at most; and the shapes of its results. scratch: of
    each source, bytes that its launcher allocates for itself"""
    space = _executed(module_text([plan], sources, original_path=path, alone=True), plan.name)
    by_operator = {operator_name(source, path): scratch.get(name, 0) for name, source in sources.items()}
    with FakeTensorMode(), Held(by_operator) as mode:
        tensors = [_tensor(plan, live_in.value) for live_in in plan.region.live_ins]
        mode.given(tensors)
        results = space[function](*tensors)
    return mode.most, tuple(tuple(one.shape) for one in tree_leaves(results))


def _tensor(plan: RegionPlan, value: int) -> torch.Tensor:
    info = plan.region.values[value]
    dtype = getattr(torch, ELEMENTS[info.dtype].torch_text.removeprefix("torch."))
    return torch.empty_strided(info.shape, info.strides, dtype=dtype)


def _executed(text: str, name: str) -> dict[str, Any]:
    """The names of a kernel module."""
    with tempfile.TemporaryDirectory(prefix="mugraph-held-") as folder:
        path = Path(folder) / f"{name}_held.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return vars(module)


def table(rows: Sequence[Row]) -> str:
    lines = [["region", "kernels", "code", "kernels, apart", "kernels, shared", "less"]]
    for row in rows:
        less = 1 - row.shared / row.apart if row.apart else 0.0
        sizes = [f"{size / MIB:.2f}" for size in (row.code, row.apart, row.shared)]
        lines.append([f"{Path(row.file).name}:{row.region}", str(row.kernels), *sizes, f"{less:.0%}"])
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.held_memory", description="MiB held by a call.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    missing = [str(path) for path in given.files if not path.is_file()]
    if missing:
        print(f"there is no file {missing[0]}", file=sys.stderr)
        return 2
    options = Options(target=given.target, measure=False)
    with Store.open() as store:
        rows = [row for path in given.files for row in rows_of(path.resolve(), options, store)]
    print(table(rows))
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
