"""One record on the tape for each PyTorch call, made by user code or by library code on its behalf."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import cast

import torch

from mugraph.ir.calls import STORES
from mugraph.ir.region import Argument
from mugraph.ops.algebra.registry import entries
from mugraph.trace.pytorch.callables import Judge
from mugraph.trace.pytorch.targets import KEEPS_TYPE, REPEATABLE, functional_form, impurity, last_part, target_of
from mugraph.trace.pytorch.words import words
from mugraph.trace.run.arguments import NotAnArgument, as_arguments
from mugraph.trace.run.autocast import AutocastMode
from mugraph.trace.run.data_sizes import comes_of_data
from mugraph.trace.run.devices import ASKS_WHERE, HERE, device_argument, elsewhere, makes_tensors, problem_with
from mugraph.trace.run.frames import frame_of_caller
from mugraph.trace.run.grad_mode import SETS, GradMode
from mugraph.trace.run.recurrent import recurrent_by_shape
from mugraph.trace.run.tape import Happening, Record
from mugraph.trace.run.tape_writer import TapeWriter
from mugraph.trace.run.tf32 import takes_tf32
from mugraph.trace.run.torch_mode import TorchMode
from mugraph.trace.run.values import version
from mugraph.trace.run.varying_operands import taken

# Calls on tensors that read no number of them: their results follow from shape, dtype, layout and device.
_METADATA = words(
    """
    shape dtype device ndim is_cuda is_cpu is_mps is_xpu is_meta layout itemsize
    nbytes names is_sparse is_quantized is_nested size dim ndimension stride numel nelement is_contiguous
    is_floating_point is_complex is_signed element_size get_device __len__ is_tensor is_same_size
    is_conj is_neg is_shared is_sparse_csr is_mkldnn is_vulkan is_ipu is_ort is_maia is_mtia __hash__
    result_type can_cast has_names dim_order numpy_dtype type_dtype name __repr__
    """
)
_OTHERWISE = words("requires_grad is_leaf grad grad_fn retains_grad is_inference storage_offset _is_view")
"""Of one tensor they are this and of another that, which a kernel takes alike."""
_OVERRIDDEN = "has_torch_function"  # what makes a library function hand itself over as a whole


class TorchCalls(TorchMode):
    """Within it, PyTorch calls go to the tape, if it is being written.

    hooks: the module that instrumented code calls, which stands between it and PyTorch on the stack
    """

    def __init__(self, writer: TapeWriter, judge: Judge, hooks: str) -> None:
        super().__init__()
        entries()  # the rules' files are read now: what runs meanwhile is not the user's
        self._writer = writer
        self._judge = judge
        self._hooks = hooks
        self.grad_mode = GradMode()
        self.autocast = AutocastMode()

    def called(self, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        target = target_of(function)
        if target == SETS:
            problem = self.grad_mode.sets(args[0] if args else None, frame_of_caller(2))
            if problem is not None and self._writer.watching:
                self._writer.add(Happening(self._writer.site(), target, problem))
            return function(*args, **kwargs)
        given = list(tensors_in((args, kwargs)))
        of_call = taken(self._writer, target, args, kwargs, given)
        plain, keywords = of_call.args, of_call.kwargs
        if not self._writer.watching:
            return function(*plain, **keywords)
        args, kwargs = of_call.written, of_call.named
        if target == "torch.nn.functional.multi_head_attention_forward":
            return self._decomposed(function, plain, keywords)
        before = [version(tensor) for tensor in given]
        inputs = tuple(self._writer.values.number(tensor) for tensor in given)
        known = {id(tensor) for tensor in given}
        out = recurrent_by_shape(target, args) or function(*plain, **keywords)
        of_call.made(out)
        if of_call.pick is not None and isinstance(out, torch.Tensor):
            of_call.pick.note(self._writer, out, self._third_party())
            return out
        produced = list(tensors_in(out))
        name = last_part(target)
        place = device_argument(name, args, kwargs)
        if target == STORES:
            self._stored(given, before, args)
            return out
        if not produced:
            self._read(target, given, before)
            return out
        of_data = "returns as many as its data say" if comes_of_data(target, args, kwargs) else None
        problem = self._third_party() or of_data or _structure_problem(out) or problem_with(place)
        if self.autocast.on:
            problem = problem or "runs under autocast"
        writes, in_place = self._note_writes(given, before), ""
        if writes:
            in_place = target if target in REPEATABLE else ""
            # The functional form is what may be emitted again; whether renaming is allowed depends on the region
            pure = functional_form(target)
            args, kwargs, flagged = _without_inplace(args, kwargs)
            unknown = pure is None and not flagged and not in_place
            if len(writes) != 1 or len(produced) != 1 or produced[0] is not given[0] or unknown:
                problem = problem or "writes in place"
            elif (pure or flagged) and not _has_its_type(pure or target, given):
                problem = problem or "writes in place with another dtype"
            target = pure or target
        elif len(produced) == 1 and id(produced[0]) in known:
            if name not in ("contiguous",):
                # A conversion that had nothing to convert; guards on dtype and training keep it so
                problem = problem_with(place) or impurity(target, args, kwargs)
                self._writer.add(Record(self._writer.site(), target, (), {}, (), (), (), problem))
                return out
            self._writer.values.fresh(produced[0])  # on other devices there may be something to copy
        if problem is None and target != in_place:
            problem = impurity(target, args, kwargs)
        outputs = tuple(self._writer.values.number(tensor) for tensor in produced)
        if makes_tensors(target) and place is None:
            self._writer.tape.homeless.update(outputs)
            kwargs = {**kwargs, "device": HERE}
        elif place is not None:
            args, kwargs = elsewhere(HERE, name, args, kwargs)
        # By number: a later write gives the same object another number.
        numbers = {**dict(zip([id(tensor) for tensor in given], inputs, strict=True)), **of_call.numbers}
        positional: tuple[Argument, ...] = ()
        named: Mapping[str, Argument] = {}
        try:
            positional, named = as_arguments(target, args, kwargs, numbers)
        except NotAnArgument as error:
            problem = problem or f"has {error}"
        tf32 = takes_tf32(target, given)
        record = Record(
            self._writer.site(), target, positional, named, inputs, outputs, writes, problem, in_place, tf32
        )
        self._writer.add(record)
        return out

    def _stored(self, given: Sequence[torch.Tensor], before: Sequence[int], args: tuple[object, ...]) -> None:
        """After `x[index] = y`: what `x` holds now has another number, which is its output."""
        stored = args[0]
        assert isinstance(stored, torch.Tensor)
        inputs = tuple(self._writer.values.number(tensor) for tensor in given)
        numbers = dict(zip(map(id, given), inputs, strict=True))
        writes = self._note_writes(given, before)
        problem = self._third_party() or (None if len(writes) == 1 else "writes in place")
        if self.autocast.on:
            problem = problem or "runs under autocast"
        positional: tuple[Argument, ...] = ()
        try:
            positional, _ = as_arguments(STORES, args, {}, numbers)
        except NotAnArgument as error:
            problem = problem or f"has {error}"
        outputs = (self._writer.values.number(stored),)
        self._writer.add(Record(self._writer.site(), STORES, positional, {}, inputs, outputs, writes, problem, STORES))

    def _read(self, target: str, given: Sequence[torch.Tensor], before: Sequence[int]) -> None:
        """A call that makes no tensor. given: the tensors it is given; before: their versions before it"""
        name = last_part(target)
        if name in ASKS_WHERE:
            self._writer.add(Happening(self._writer.site(), target, "asks which device a tensor is on"))
        elif name in _OTHERWISE and not target.endswith(".__set__"):
            self._writer.add(Happening(self._writer.site(), target, "asks what gradients or memory a tensor has"))
        elif name not in _METADATA or target.endswith(".__set__"):
            problem = "writes a tensor" if name.startswith("__set") else "reads a tensor's numbers"
            self._note_writes(given, before)
            self._writer.add(Happening(self._writer.site(), target, problem))
        else:
            self._writer.add(Record(self._writer.site(), target, (), {}, (), (), (), None))

    def _decomposed(
        self, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        """Runs a library function of PyTorch as if it were the user's, so that its parts are recorded in place of
        it."""
        original = getattr(torch.nn.functional, _OVERRIDDEN)
        setattr(torch.nn.functional, _OVERRIDDEN, lambda _: False)  # pyright: ignore[reportUnknownLambdaType]
        try:
            with self:
                return function(*args, **kwargs)
        finally:
            setattr(torch.nn.functional, _OVERRIDDEN, original)

    def _note_writes(self, given: Sequence[torch.Tensor], before: Sequence[int]) -> tuple[tuple[int, int], ...]:
        writes: list[tuple[int, int]] = []
        for tensor, old in zip(given, before, strict=True):
            if version(tensor) != old:
                number = self._writer.values.number(tensor)
                self._writer.values.written(tensor)
                writes.append((number, self._writer.values.number(tensor)))
        return tuple(dict.fromkeys(writes))

    def _third_party(self) -> str | None:
        """Why a call that another library made may be in no region."""
        frame: FrameType | None = frame_of_caller(3)  # of PyTorch's call
        while frame is not None and frame.f_globals.get("__name__") not in (__name__, self._hooks):
            package = self._judge.foreign(frame)
            if package is not None:
                return f"made inside {package}"
            frame = frame.f_back
        return None


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in cast(Sequence[object], value):
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in cast(Mapping[object, object], value).values():
            yield from tensors_in(item)


def _structure_problem(out: object) -> str | None:
    if isinstance(out, torch.Tensor):
        return None
    if isinstance(out, tuple | list):
        items = cast(Sequence[object], out)
        if len(items) > 1 and all(isinstance(item, torch.Tensor) for item in items):
            return None
    return "returns something other than tensors"


def _without_inplace(
    args: tuple[object, ...], kwargs: Mapping[str, object]
) -> tuple[tuple[object, ...], Mapping[str, object], bool]:
    """Drops `inplace=True`."""
    if kwargs.get("inplace") is True:
        return args, {key: value for key, value in kwargs.items() if key != "inplace"}, True
    return args, kwargs, False


def _has_its_type(pure: str, tensors: Sequence[torch.Tensor]) -> bool:
    """Whether the pure function's result has the type of its first argument, which the call writes to."""
    if last_part(pure) in KEEPS_TYPE:
        return True
    result = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.dim() > 0:
            result = torch.promote_types(result, tensor.dtype)
    return result == tensors[0].dtype
