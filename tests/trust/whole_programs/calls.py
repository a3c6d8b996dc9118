"""The ways in which a function of a drawn file is called, and what is to be seen of each call."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import nn

from tests.changes.described import Raised, described
from tests.trust.whole_programs import given
from tests.trust.whole_programs.given import Inputs
from tests.trust.whole_programs.specs import DTYPES

ARGUMENT = re.compile(r"(\w+)=(\w+)\[([^\]]*)\]")


@dataclass(frozen=True)
class Entry:
    """A function or a class with shapes above it. spec: argument -> type and shape"""

    name: str
    spec: dict[str, tuple[torch.dtype, tuple[int, ...]]]


def entries(path: Path) -> list[Entry]:
    lines, found = path.read_text().splitlines(), list[Entry]()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if lines[first - 2].startswith("# mugraph: "):
                said = ARGUMENT.findall(lines[first - 2])
                found.append(Entry(node.name, {n: (DTYPES[k], tuple(map(int, s.split(",")))) for n, k, s in said}))
    return found


@dataclass
class Call:
    """One of them. inputs: for the entry, anew each time. around: what is on while it runs. train: the module's mode.
    gradients: whether the results are differentiated. again: calls before the one that is looked at.
    before: of other inputs, one that comes first of all"""

    name: str
    inputs: Callable[[], Inputs]
    around: Callable[[], contextlib.AbstractContextManager[Any]] = torch.no_grad
    train: bool = False
    gradients: bool = False
    again: int = 0
    before: Callable[[], Inputs] | None = None


def calls(entry: Entry, module: ModuleType, noise: int = 0) -> Iterator[Call]:
    """noise: the seed of a rounding of every number of the inputs; 0: none"""
    spec = entry.spec
    flags = _flags(getattr(module, entry.name))

    def plain(shift: int = 0) -> Inputs:
        return given.drawn(spec, shift, noise)

    yield Call("declared", plain)
    yield Call("third call", lambda: plain(1), again=2)
    yield Call(
        "after another type",
        plain,
        before=lambda: {name: given.cast(one, torch.float64) for name, one in plain().items()},
    )
    yield Call("without a context", plain, contextlib.nullcontext)
    yield Call("inference mode", plain, torch.inference_mode)
    yield Call("training", plain, train=True)
    yield Call("gradients", lambda: given.differentiable(plain()), contextlib.nullcontext, gradients=True)
    yield Call("autocast", plain, _autocast)
    yield Call("not contiguous", lambda: {name: given.turned(one) for name, one in plain().items()})
    yield Call("expanded", lambda: {name: one[:1].expand(one.shape) for name, one in plain().items()})
    yield Call("gradients not wanted", lambda: {name: given.wanting(one) for name, one in plain().items()})
    yield Call("other rows", lambda: given.drawn(given.with_rows(spec, 5), noise=noise))
    yield Call("other type", lambda: {name: given.cast(one, torch.float64) for name, one in plain().items()})
    yield Call("another type", lambda: {name: given.cast(one, torch.float16) for name, one in plain().items()})
    yield Call("a dimension more", lambda: {name: one[None] for name, one in plain().items()})
    yield Call("a dimension less", lambda: {name: one[0] for name, one in plain().items()})
    yield Call("narrow", lambda: {name: one[..., :-1] for name, one in plain().items()})
    yield Call("a number", lambda: dict.fromkeys(spec, 1.5))
    for name, value in flags.items():
        for other in _others(module, value):
            yield Call(
                f"{name}={'tensor' if isinstance(other, torch.Tensor) else other}",
                lambda n=name, o=other: {**plain(), n: o},
            )
    if len(spec) > 1:
        yield Call("one tensor twice", lambda: given.one_tensor(plain()))
        yield Call("views that overlap", lambda: given.overlapping(spec, plain()))
        yield Call("views of one tensor", lambda: given.of_one_tensor(spec, plain()))
    if isinstance(getattr(module, entry.name), type):
        yield Call("its own state", lambda: {**plain(), "<state>": True})


def seen(module: ModuleType, entry: Entry, call: Call, launches: Callable[[], int]) -> dict[str, Any]:
    """What comes of it: results, inputs, the module's state, its globals, the kernels that ran."""
    torch.manual_seed(7)
    model = _made(module, entry)
    if call.train and isinstance(model, nn.Module):
        model.train()
    start = before = launches()
    inputs: Inputs = {}
    _as_imported(module)
    if call.before is not None:
        with contextlib.suppress(Exception), call.around():
            model(**call.before())
    try:
        for _ in range(call.again):
            with call.around():
                model(**call.inputs())
        inputs = call.inputs()
        if inputs.pop("<state>", False):
            first = next(iter(entry.spec))
            held = [one for one in (*model.parameters(), *model.buffers()) if one.shape == inputs[first].shape]
            inputs[first] = held[0] if held else inputs[first].mean(0) * 0 + model.state
        before = launches()
        torch.manual_seed(11)
        with call.around():
            result = model(**inputs)
        if call.gradients:
            _differentiate(result)
    except Exception as error:
        result = Raised(type(error).__qualname__)
    after = launches()
    state: list[Any] = []
    if isinstance(model, nn.Module):
        state = [
            *model.named_parameters(),
            *model.named_buffers(),
            ("last", getattr(model, "last", None)),
            ("seen", getattr(model, "seen", None)),
            ("count", getattr(model, "count", None)),
            ("cached", vars(model).get("cached")),
        ]
    named = [getattr(module, "LATEST", None), list(getattr(module, "CACHE", {}).values())]
    inputs_and_state = _tensors([named, list(inputs.values()), [value for _, value in state]])
    every = [*inputs_and_state, *_tensors(result)]
    return {
        "result": described(_plain(result), every),
        "kind": type(result).__name__,
        "inputs": described({name: _plain(one) for name, one in inputs.items()}, every),
        "which": [next((n for n, one in inputs.items() if one is part), None) for part in _tensors(result)],
        "places": [_overlaps(one, every) for one in _tensors(result)],
        "gradients": described([one.grad for one in inputs_and_state if _is_leaf(one) and one.grad is not None]),
        "graph": [(_is_leaf(one), one.requires_grad, one.is_inference()) for one in _tensors(result)],
        "state": described({name: _plain(one) for name, one in state}, every),
        "globals": repr([getattr(module, name, None) for name in ("NOTES", "COUNT", "SCALE", "FLAGS")]),
        "names": described(named, every),
        "launches": after - before,
        "launches in all": after - start,
    }


def _as_imported(module: ModuleType) -> None:
    """What a call leaves behind is no input of the next one, so that each can be made again."""
    if hasattr(module, "CACHE"):
        module.CACHE.clear()
        module.FLAGS.update(deep=False)
        vars(module).update(COUNT=0, LATEST=None, SCALE=0.5)


def _is_leaf(tensor: torch.Tensor) -> bool | None:
    """None where PyTorch refuses to say: of views that were made without gradients, and written to with them."""
    try:
        return tensor.is_leaf
    except RuntimeError:
        return None


def _overlaps(tensor: torch.Tensor, others: list[torch.Tensor]) -> list[tuple[int, int]]:
    """The others of the same memory, and how far from them it begins."""
    owner = tensor.untyped_storage()._cdata
    return [
        (n, int(one.storage_offset()) - int(tensor.storage_offset()))
        for n, one in enumerate(others)
        if one.untyped_storage()._cdata == owner
    ]


def _plain(value: Any) -> Any:
    """With named tuples and dataclasses as dicts; sizes as tuples."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return cast("Any", value)._asdict()
    return vars(value) if hasattr(value, "more") and not isinstance(value, tuple) else value


def _tensors(value: Any) -> list[torch.Tensor]:
    value = _plain(value)
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [one for part in parts for one in _tensors(part)]


def _made(module: ModuleType, entry: Entry) -> Any:
    target = getattr(module, entry.name)
    if not isinstance(target, type):
        return target
    model: nn.Module = target().eval()
    generator = torch.Generator().manual_seed(zlib.crc32(entry.name.encode()))
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and tensor.dim() and "mask" not in name:
            numbers = torch.randn(tensor.shape, generator=generator) * 0.3
            tensor.data.copy_(
                1 + numbers.abs() if name.endswith(("running_var", "weight")) and tensor.dim() == 1 else numbers
            )
    return model


def _others(module: ModuleType, value: Any) -> tuple[Any, ...]:
    """Values in place of a default."""
    if isinstance(value, bool):
        return (not value,)
    if type(value).__name__ == "Config":
        return None, module.Config(scale=2.0, deep=not value.deep, width=4)
    return None, torch.full((8,), 0.5)


def _flags(target: Any) -> dict[str, Any]:
    called = inspect.unwrap(target.forward if isinstance(target, type) else target)
    return {n: p.default for n, p in inspect.signature(called).parameters.items() if p.default is not p.empty}


def _autocast() -> contextlib.AbstractContextManager[Any]:
    stack = contextlib.ExitStack()
    stack.enter_context(torch.no_grad())
    stack.enter_context(torch.autocast("cpu", torch.bfloat16))
    return stack


def _differentiate(result: Any) -> None:
    total = sum(one.double().square().sum() for one in _tensors(result) if one.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
