"""What constant tensors hold. The traced run has no numbers, so it is remembered how each constant was made.

A tensor is a constant if a pure function made it of numbers and other constants: a mask built in `forward`, or a buffer
that `__init__` registered. When its contents are asked for it is made again, with numbers. Arguments of the traced
function are no constants, whatever was passed, and neither are parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from mugraph.ir.region import Triangle
from mugraph.trace.pytorch.targets import functional_form, impurity, last_part, target_of
from mugraph.trace.pytorch.words import words
from mugraph.trace.run.devices import elsewhere
from mugraph.trace.run.torch_mode import TorchMode
from mugraph.trace.run.triangles import MOST_ELEMENTS, triangle_of
from mugraph.trace.run.values import version

_log = logging.getLogger("mugraph.trace")

ALIKE = words("to type_as expand_as view_as reshape_as")
SHAPED = words("ones_like zeros_like full_like new_ones new_zeros new_full")
"""Functions that use another tensor, their second argument or the first, only for its type, shape and device."""
_NUMBERS = words("__bool__ __int__ __float__ __index__ item tolist")
"""Functions that read the numbers of a tensor."""
_MOST = 4096
"""Constants that are remembered."""


@dataclass(frozen=True)
class _Recipe:
    """How a constant was made.

    tensor: kept, so that its id stays its own
    at:     its version when it was made
    index:  its position among the call's results
    """

    tensor: torch.Tensor
    at: int
    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    index: int


class Constants(TorchMode):
    """Watches which tensors are made while it is entered. Of earlier tensors it knows only those with numbers.

    real: the run has numbers everywhere, so numbers are no sign of a constant
    """

    def __init__(self, real: bool) -> None:
        super().__init__()
        self._real = real
        self._recipes: dict[int, _Recipe] = {}
        self._arguments: set[int] = set()
        self._kept: list[torch.Tensor] = []
        self._triangles: dict[tuple[int, int], Triangle | None] = {}

    def forget(self, value: object) -> None:
        """The tensors in it are arguments."""
        for tensor in _tensors(value):
            self._arguments.add(id(tensor))
            self._kept.append(tensor)

    def same(self, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        """`new` holds what `old` does."""
        if id(old) in self._recipes or not isinstance(old, FakeTensor):
            self._remember((new,), torch.clone, (old,), {})
        return new

    def triangle(self, tensor: torch.Tensor) -> Triangle | None:
        """What a tensor holds now, if it is a constant of that form."""
        key = id(tensor), version(tensor)
        if key not in self._triangles:
            found = None
            if tensor.numel() <= MOST_ELEMENTS and self._is_known(tensor):
                made = self._again(tensor)
                found = None if made is None else triangle_of(made)
            self._triangles[key] = found
            self._kept.append(tensor)
        return self._triangles[key]

    def called(self, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        name = last_part(target_of(function))
        if name in _NUMBERS and args and isinstance(args[0], FakeTensor):
            with unset_fake_temporarily(), _quiet():
                made = self.numbers_of(args[0])
                if made is not None:
                    return function(made, *args[1:], **kwargs)
        said = self._without_numbers(name, args)
        given = list(_tensors((said, kwargs)))
        known = all(self._is_known(tensor) for tensor in given)
        old = [self._recipes.get(id(tensor)) for tensor in given] if known else []
        out = function(*args, **kwargs)
        if known and len(self._recipes) < _MOST:
            self._note(function, said, kwargs, given, old, out)
        return out

    def numbers_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """What a constant holds; None where it is not known."""
        if tensor.numel() > MOST_ELEMENTS or not self._is_known(tensor):
            return None
        return self._again(tensor)

    def _again(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Makes a constant again; None where that fails: it is no constant that is known, then."""
        try:
            with _quiet():
                return self._made({}, tensor)
        except (RuntimeError, TypeError, ValueError) as error:
            _log.info("a constant tensor cannot be made again: %s", error)
            return None

    def _without_numbers(self, name: str, args: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments, with other tensors of the same kind for those whose numbers play no role."""
        where = range(1, len(args)) if name in ALIKE else range(1) if name in SHAPED else ()
        return tuple(
            _like(arg) if at in where and isinstance(arg, torch.Tensor) and not self._is_known(arg) else arg
            for at, arg in enumerate(args)
        )

    def _note(
        self,
        func: Callable[..., object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        given: Sequence[torch.Tensor],
        old: Sequence[_Recipe | None],
        out: object,
    ) -> None:
        target = target_of(func)
        produced = list(_tensors(out))
        if not produced or any(tensor.numel() > MOST_ELEMENTS for tensor in (*given, *produced)):
            return
        pure = impurity(target, args, kwargs) is None
        writes = functional_form(target) is not None and len(produced) == 1 and given and produced[0] is given[0]
        if writes and old[0] is not None:
            # The tensor is another one now, and its contents before are what the old recipe makes.
            args = (old[0], *args[1:])
            self._remember(produced, func, args, kwargs)
        elif pure and not any(tensor is other for tensor in produced for other in given):
            self._remember(produced, func, args, kwargs)

    def _remember(
        self,
        produced: Sequence[torch.Tensor],
        func: Callable[..., object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> None:
        args = tuple(self._frozen(arg) for arg in args)
        kwargs = {name: self._frozen(arg) for name, arg in kwargs.items()}
        for index, tensor in enumerate(produced):
            self._recipes[id(tensor)] = _Recipe(tensor, version(tensor), func, args, kwargs, index)

    def _frozen(self, value: object) -> object:
        """An argument with tensors replaced by how they were made: they may be written to later."""
        if isinstance(value, torch.Tensor):
            return self._recipes.get(id(value), value)
        if isinstance(value, tuple | list):
            items = [self._frozen(item) for item in cast(Sequence[object], value)]
            return tuple(items) if isinstance(value, tuple) else items
        return value

    def _is_known(self, tensor: torch.Tensor) -> bool:
        if id(tensor) in self._arguments or isinstance(tensor, torch.nn.Parameter):
            return False
        recipe = self._recipes.get(id(tensor))
        if recipe is not None:
            return recipe.at == version(tensor)
        return not self._real and not isinstance(tensor, FakeTensor)

    def _made(self, done: dict[int, torch.Tensor], value: object) -> torch.Tensor:
        """A constant's numbers, on the CPU."""
        recipe = value if isinstance(value, _Recipe) else self._recipes.get(id(value))
        if recipe is None:
            return cast(torch.Tensor, value)
        if id(recipe) not in done:
            args = [self._with_numbers(done, arg) for arg in recipe.args]
            kwargs = {name: self._with_numbers(done, arg) for name, arg in recipe.kwargs.items() if name != "device"}
            if functional_form(target_of(recipe.function)) is not None and args:
                args[0] = cast(torch.Tensor, args[0]).clone()
            name = last_part(target_of(recipe.function))
            args, kwargs = elsewhere(torch.device("cpu"), name, tuple(args), kwargs)
            result = args[0] if name in ("cuda", "cpu") else recipe.function(*args, **kwargs)
            done[id(recipe)] = list(_tensors(result))[recipe.index]
        return done[id(recipe)]

    def _with_numbers(self, done: dict[int, torch.Tensor], value: object) -> object:
        if isinstance(value, _Recipe | torch.Tensor):
            return self._made(done, value)
        if isinstance(value, tuple | list):
            items = [self._with_numbers(done, item) for item in cast(Sequence[object], value)]
            return tuple(items) if isinstance(value, tuple) else items
        return value


@contextmanager
def _quiet() -> Generator[None]:
    """Where calls of PyTorch are not the program's."""
    with torch._C.DisableTorchFunction(), torch.no_grad():  # pyright: ignore[reportPrivateUsage]
        yield


def _like(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same shape and type, with numbers; where a size is unknown there is none, and it is itself."""
    if any(type(size) is not int for size in tensor.shape):
        return tensor
    with unset_fake_temporarily(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        return torch.zeros(1, dtype=tensor.dtype).expand(tensor.shape)


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, slice):
        bounds = cast("slice[object, object, object]", value)
        yield from _tensors((bounds.start, bounds.stop, bounds.step))
    elif isinstance(value, tuple | list):
        for item in cast(Sequence[object], value):
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in cast(Mapping[object, object], value).values():
            yield from _tensors(item)
