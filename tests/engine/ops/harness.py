"""Records torch code as Calls, and evaluates tensor programs in float64 over named axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, prod
from typing import Any

import torch
from mugraph.ir.calls import operands
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Argument, Call, Named, Position, Range, Ref, Region, Symbol, TensorInfo
from mugraph.ir.tensors import Tensor
from mugraph.kinds import Opaque
from mugraph.ops.functions.unary import UNARY
from mugraph.ops.views import BYTES
from mugraph.trace.pytorch.targets import target_of
from mugraph.trace.run.triangles import triangle_of
from mugraph.units.lower import Lowered, lower
from torch.overrides import TorchFunctionMode

NOWHERE = Range(Position(0, 0), Position(0, 0))
DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.bool: "bool",
          torch.int64: "i64", torch.int32: "i32", torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16",
          torch.complex64: "c64", torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2"}  # fmt: skip


class Recorder(TorchFunctionMode):
    """One Call per torch call of the code under test."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.values: dict[int, TensorInfo] = {}
        self.numbers: dict[int, int] = {}
        self.kept: list[torch.Tensor] = []
        self.inputs: set[int] = set()  # what depends on the arguments

    def number(self, tensor: torch.Tensor, *, constant: bool = False) -> int:
        if id(tensor) not in self.numbers:
            self.kept.append(tensor)
            self.numbers[id(tensor)] = len(self.kept) - 1
            with torch._C.DisableTorchFunction():
                triangle = triangle_of(tensor) if constant else None
                info = TensorInfo(tuple(tensor.shape), tuple(tensor.stride()), DTYPES[tensor.dtype], triangle=triangle)
            self.values[self.numbers[id(tensor)]] = info
        return self.numbers[id(tensor)]

    def encode(self, value: Any) -> Argument:
        if isinstance(value, torch.Tensor):
            return Ref(self.number(value))
        if isinstance(value, torch.dtype):
            return Symbol(str(value))
        if value is Ellipsis:
            return Symbol("...")
        if isinstance(value, (tuple, list)):
            return tuple(self.encode(item) for item in value)
        return value

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        result = func(*args, **kwargs)
        if name == "__get__" and func.__self__.__name__ not in ("T", "mT"):
            return result
        arguments = tuple(self.encode(item) for item in args)
        keywords = {key: self.encode(item) for key, item in kwargs.items()}
        read = operands(Call("", arguments, keywords, (), NOWHERE))
        constant = not self.inputs.intersection(read)
        if name.endswith("_") and not name.startswith("__"):
            del self.numbers[id(result)]  # what was written is a new value
        if not isinstance(result, torch.Tensor):
            if not (isinstance(result, (tuple, list)) and all(isinstance(item, torch.Tensor) for item in result)):
                return result
            outputs = tuple(self.number(item, constant=constant) for item in result)
        else:
            outputs = (self.number(result, constant=constant),)
        self.inputs.update(outputs if not constant else ())
        self.calls.append(Call(target_of(func), arguments, keywords, outputs, NOWHERE))
        return result


def record(fn: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]], inputs: Mapping[str, torch.Tensor]) -> Region:
    """The region that `fn` is."""
    recorder = Recorder()
    live_ins = tuple(Named(name, recorder.number(tensor)) for name, tensor in inputs.items())
    recorder.inputs.update(live_in.value for live_in in live_ins)
    with recorder:
        result = fn(**inputs)
    outs = result if isinstance(result, tuple) else (result,)
    names = ["out"] if len(outs) == 1 else [f"out{i}" for i in range(len(outs))]
    live_outs = tuple(Named(name, recorder.number(out)) for name, out in zip(names, outs, strict=True))
    return Region(fn.__name__, NOWHERE, "statements", "", live_ins, live_outs, tuple(recorder.calls), recorder.values)


def lower_region(region: Region) -> Lowered:
    outputs = [live.value for live in region.live_outs]
    return lower(region.calls, region.values, region.live_ins, outputs, "test")


def load(tensor: torch.Tensor, layout: Tensor, sizes: Mapping[str, int]) -> torch.Tensor:
    """The tensor with one dimension per axis, in the order of `layout.axes`."""
    if layout.shape(sizes) != tuple(tensor.shape):  # several dimensions side by side in memory are one
        assert prod(layout.shape(sizes)) == tensor.numel()
        tensor = tensor.reshape(layout.shape(sizes))
    for window in layout.windows:  # a dimension of places becomes positions and taps, zero where there is no place
        positions, taps = (prod(sizes[axis] for axis in part) for part in window.split(layout.dims[window.dim]))
        tensor = spread_out(tensor, window.dim, window.spread)
        pads = [0] * (2 * tensor.dim())
        behind = 2 * (tensor.dim() - 1 - window.dim)
        pads[behind : behind + 2] = [window.pad, max(0, -window.rest)]
        order = torch.arange(positions).flip(0) if window.reverse else torch.arange(positions)
        places = order[:, None] * window.stride + torch.arange(taps) * window.dilation
        if window.edge:  # another element of the same window
            places = within(places - window.pad, tensor.shape[window.dim])
        else:
            tensor = torch.nn.functional.pad(tensor, pads)
        tensor = tensor.index_select(window.dim, places.flatten())
    return tensor.reshape([sizes[axis] for axis in layout.axes])


def chosen(inputs: Mapping[str, torch.Tensor], layout: Tensor, sizes: Mapping[str, int]) -> torch.Tensor:
    """The tensor that a load reads: of one with an index, the rows that this says, one after the other."""
    tensor = inputs[layout.name]
    for dim, one in layout.looked_up.items():
        numbers = inputs[one.name].long().flatten()
        assert bool(((numbers >= (-one.rows if one.wraps else 0)) & (numbers < one.rows)).all())
        tensor = tensor.reshape(layout.memory_shape(sizes)).index_select(dim, numbers % one.rows)
    return tensor


def spread_out(tensor: torch.Tensor, dim: int, spread: int) -> torch.Tensor:
    """With so many places from one element along a dimension to the next one, zeros between."""
    shape = list(tensor.shape)
    shape[dim] = (shape[dim] - 1) * spread + 1
    found = tensor.new_zeros(shape)
    found.movedim(dim, 0)[::spread] = tensor.movedim(dim, 0)
    return found


def within(places: torch.Tensor, extent: int) -> torch.Tensor:
    """Places of each position's taps. Those below the dimension are the first of the position's that is not below it,
    those above are the last that is not above."""
    inside = (places >= 0) & (places < extent)
    assert inside.any(dim=1).all()
    first = torch.where(inside, places, extent).amin(dim=1, keepdim=True)
    last = torch.where(inside, places, -1).amax(dim=1, keepdim=True)
    return torch.where(places < 0, first, torch.where(places >= extent, last, places))


def parts(lowered: Lowered, tensors: Mapping[int, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What a program's inputs hold, of values by number: each itself, or a view of it, as its description says."""
    found: dict[str, torch.Tensor] = {}
    for name, value in lowered.inputs.items():
        view, tensor = lowered.views.get(name), tensors[value]
        if view is not None:
            if view.part == BYTES:
                tensor = tensor.view(torch.uint8)
            made = (tensor if view.shape is None else tensor.reshape(view.shape))[view.index]
            assert tuple(made.shape) == view.info.shape
            if tensor.is_contiguous():
                assert tuple(made.stride()) == view.info.strides
            tensor = made
        found[name] = tensor.double()
    return found


def triangle(op: Op, sizes: Mapping[str, int]) -> torch.Tensor:
    """A mask's ones and zeros, by torch.tril."""
    rows, columns = ([sizes[axis] for axis in axes] for axes in (op.rows, op.columns))
    mask = torch.ones(prod(rows), prod(columns), dtype=torch.float64).tril(int(op.value))
    return mask.reshape([*rows, *columns])


def evaluate(program: TensorProgram, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Output tensors by name. inputs: tensors by name, in the shapes of the user's code."""
    letter = {axis: chr(ord("a") + i) for i, axis in enumerate(program.sizes)}
    values: dict[str, tuple[str, torch.Tensor]] = {}  # letters of the dimensions, numbers

    def einsum(operands: Sequence[str], axes: Sequence[str]) -> tuple[str, torch.Tensor]:
        out = "".join(letter[axis] for axis in axes)
        spec = ",".join(values[name][0] for name in operands) + "->" + out
        return out, torch.einsum(spec, *(values[name][1] for name in operands))

    def spread(name: str, axes: Sequence[str]) -> torch.Tensor:
        have, tensor = values[name]
        order = [letter[axis] for axis in axes if letter[axis] in have]
        tensor = tensor.permute([have.index(x) for x in order])
        return tensor.reshape([program.sizes[a] if letter[a] in have else 1 for a in axes])

    for op in program.ops:
        if op.kind is Kind.LOAD:
            layout = program.tensor(op.tensor)
            assert tuple(sorted(layout.axes)) == op.axes
            rows = chosen(inputs, layout, program.sizes)
            values[op.name] = ("".join(letter[a] for a in layout.axes), load(rows, layout, program.sizes))
            continue
        if op.kind is Kind.CONST:
            values[op.name] = ("", torch.tensor(op.value, dtype=torch.float64))
            continue
        if op.kind is Kind.MASK:
            values[op.name] = ("".join(letter[a] for a in (*op.rows, *op.columns)), triangle(op, program.sizes))
            continue
        if op.kind is Kind.POSITION:
            sizes = [program.sizes[axis] for axis in op.rows]
            numbers = torch.arange(prod(sizes), dtype=torch.float64).reshape(sizes) + op.value
            values[op.name] = ("".join(letter[axis] for axis in op.rows), numbers)
            continue
        have = {axis for name in op.inputs for axis in program.op(name).axes}
        assert op.axes == tuple(sorted(have - (set() if op.kind.scans else set(op.over)))), op
        assert set(op.over) <= set.intersection(*(set(program.op(name).axes) for name in op.inputs)) or not op.over, op
        if op.kind.scans:
            have, tensor = values[op.inputs[0]]
            along = [have.index(letter[axis]) for axis in op.over]
            turned = tensor.flip(along) if op.kind.backwards else tensor
            sums = turned.cumsum(along[0])
            values[op.name] = have, sums.flip(along) if op.kind.backwards else sums
            continue
        if op.kind in (Kind.SUM, Kind.DOT):
            assert op.over
            values[op.name] = einsum(op.inputs, op.axes)
            continue
        if op.kind is Kind.AMAX:
            have, tensor = values[op.inputs[0]]
            kept = "".join(axis for axis in have if axis not in {letter[a] for a in op.over})
            values[op.name] = kept, tensor.amax([have.index(letter[a]) for a in op.over])
            continue
        assert not op.over
        args = [spread(name, op.axes) for name in op.inputs]
        match op.kind:
            case Kind.ADD:
                result = args[0] + args[1]
            case Kind.MUL:
                result = args[0] * args[1]
            case Kind.DIV:
                result = args[0] / args[1]
            case Kind.SQRT:
                result = args[0].sqrt()
            case Kind.EXP:
                result = args[0].exp()
            case Kind.MAX:
                result = torch.maximum(args[0], args[1])
            case Kind.UNARY:
                function = UNARY[op.fn]
                call: Any = torch
                for part in function.reference.split(".")[1:]:
                    call = getattr(call, part)
                result = call(args[0], **dict(function.keywords))
            case Kind.KEPT:
                result = torch.where(args[0] != 0, args[1], 0.0)
            case Kind.SEEN:
                result = torch.where(args[0] != 0, args[1], -inf)
            case Kind.ATTENDED:
                result = args[1] + torch.where(args[0] != 0, 0.0, -inf)
            case Kind.POWER_OF_TWO:
                result = torch.exp2(args[0])
            case Kind.BIT_AND:
                result = (args[0].long() & args[1].long()).double()
            case Kind.DECAY:
                result = torch.exp(-torch.abs(args[0]))
            case Kind(opaque=Opaque(names=names)):
                result = getattr(torch, names[0])(*args).double()
            case _:
                raise AssertionError(op.kind)
        shape = [program.sizes[a] for a in op.axes]
        values[op.name] = ("".join(letter[a] for a in op.axes), result.expand(shape))
    results: dict[str, torch.Tensor] = {}
    for name, tensor in program.outputs.items():
        have, value = values[name]
        assert set(have) == {letter[a] for a in tensor.axes}
        ordered = value.permute([have.index(letter[a]) for a in tensor.axes])
        results[tensor.name] = ordered.reshape(tensor.shape(program.sizes))
    return results


def well_formed(lowered: Lowered) -> None:
    """What every consumer relies on."""
    program = lowered.program
    seen: set[str] = set()
    for op in program.ops:
        assert all(name in seen for name in op.inputs), op
        assert op.name not in seen
        assert op.name.isidentifier()
        seen.add(op.name)
    assert {t.name for t in program.tensors} == {op.tensor for op in program.ops if op.kind is Kind.LOAD}
    assert {t.name for t in (*program.tensors, *program.indices)} == set(lowered.inputs)
    used = {name for op in program.ops for name in op.inputs} | set(program.outputs)
    assert used == seen, "dead operators"
    for tensor in (*program.tensors, *program.outputs.values()):
        assert len(set(tensor.axes)) == len(tensor.axes)
    mentioned = {axis for op in program.ops for axis in (*op.axes, *op.over)}
    assert mentioned == set(program.sizes)
    assert all(size > 1 for size in program.sizes.values())
    keys = [(op.kind, tuple(sorted(op.inputs)) if op.kind in (Kind.ADD, Kind.MUL) else op.inputs, op.over, op.value,
             op.fn, op.tensor, op.rows, op.columns) for op in program.ops]  # fmt: skip
    assert len(set(keys)) == len(keys), "operators that should be shared"
    assert prod(1 for _ in program.outputs) == 1


def exact(tensor: torch.Tensor) -> torch.Tensor:
    """In float64; a condition stays one, and so do whole numbers and what is stored in eight bits."""
    return tensor if tensor.dtype.itemsize == 1 or not tensor.is_floating_point() else tensor.double()


def check(fn: Callable[..., Any], inputs: Mapping[str, torch.Tensor]) -> Lowered:
    """Lower `fn` as recorded on `inputs`, evaluate in float64, compare with torch in float64."""
    region = record(fn, inputs)
    lowered = lower_region(region)
    well_formed(lowered)
    by_value = {live.value: inputs[live.expression] for live in region.live_ins}
    got = evaluate(lowered.program, parts(lowered, by_value))
    want = fn(**{name: exact(tensor) for name, tensor in inputs.items()})
    wants = want if isinstance(want, tuple) else (want,)
    for (name, value), expected in zip(lowered.outputs.items(), wants, strict=True):
        got[name] = got[name].reshape(region.values[value].shape)
        torch.testing.assert_close(got[name], expected, rtol=1e-5, atol=1e-6, check_dtype=False)
    return lowered


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(n * 7**i for i, n in enumerate(shape)))
    return torch.randn(*shape, generator=generator)
