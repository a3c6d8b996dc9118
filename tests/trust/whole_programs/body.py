"""The body of a function while it is written. Each statement runs as it is added, so that the next one knows the
shapes of what is there, and what raises or grows without bound is left out."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

LARGEST = 40.0
"""Of any number: results of float16 must stay results."""
MOST = 2048
"""Elements of a tensor: Triton's interpreter is slow."""
WORDS = ("h", "y", "z", "out", "q", "k", "v", "scores", "res", "gate", "tmp", "hidden", "mixed", "skip", "acc", "größe")
_KEPT = (torch.Tensor, list, dict, tuple, nn.Module)

Statement = Callable[["Body"], "list[str] | None"]


class Body:
    """names: what the function may read and bind. lines: what was written, without indentation of its own.

    written: the names that it binds, the last one last
    """

    def __init__(self, rng: random.Random, namespace: dict[str, Any], given: dict[str, Any]) -> None:
        self.rng = rng
        self.namespace = {**namespace, **given}
        self.names = list(given)
        self.lines: list[str] = []
        self.depth = 0
        self._number = 0

    def fresh(self) -> str:
        """A name for a result: a new one, or at times one that is bound already."""
        bound = [name for name in self.names if name != "self" and not name.startswith("left")]  # of `while left > 0`
        if bound and self.rng.random() < 0.3:
            return self.rng.choice(bound)
        word = self.rng.choice(WORDS)
        if word in self.namespace:
            self._number += 1
            word = f"{word}{self._number}"
        return word

    def unused(self, word: str) -> str:
        self._number += 1
        return f"{word}{self._number}" if word in self.namespace else word

    def value(self, text: str) -> Any:
        """What an expression is; None where it raises. It must not write."""
        try:
            with torch.no_grad():
                return eval(text, self.namespace)
        except Exception as error:
            self.last_error = error
            return None

    def shape(self, text: str) -> tuple[int, ...]:
        value = self.value(text)
        return tuple(value.shape) if isinstance(value, torch.Tensor) else ()

    def tensors(self, keep: Callable[[torch.Tensor], bool] = lambda _: True, *, own: bool = True) -> list[str]:
        """Names of floating-point tensors. own: among them those of the module"""
        found = [name for name in self.names if self._is(self.namespace.get(name), keep)]
        module = self.namespace.get("self")
        if own and isinstance(module, nn.Module):
            held = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
            found += [f"self.{name}" for name, tensor in held if self._is(tensor, keep)]
        return found

    def pick(self, keep: Callable[[torch.Tensor], bool] = lambda _: True, *, own: bool = False) -> str | None:
        """One of them, more often a recent one."""
        found = self.tensors(keep, own=own)
        if not found:
            return None
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]

    def integers(self) -> list[str]:
        return [name for name in self.names if self._of(name, torch.int64)]

    def masks(self) -> list[str]:
        return [name for name in self.names if self._of(name, torch.bool)]

    def _of(self, name: str, kind: torch.dtype) -> bool:
        value = self.namespace.get(name)
        return isinstance(value, torch.Tensor) and value.dtype == kind

    @staticmethod
    def _is(value: Any, keep: Callable[[torch.Tensor], bool]) -> bool:
        return isinstance(value, torch.Tensor) and value.is_floating_point() and keep(value)

    def attempt(self, lines: list[str]) -> bool:
        """Adds the lines, if they run and leave numbers of a moderate size."""
        try:
            before = self._snapshot()
        except TypeError as error:  # a table has a generator, which is not to be copied
            self.last_error = error
            return False
        try:
            code = compile("\n".join(lines), "<drawn>", "exec")
            with torch.no_grad():
                exec(code, self.namespace)
            fine = self._moderate()
            self._snapshot()  # what has a gradient's graph cannot be copied
        except Exception as error:
            self.last_error = error
            self._restore(before)
            return False
        if not fine:
            self._restore(before)
            return False
        self.lines += lines
        self.names += [name for name in self.namespace if name not in before[0] and name not in self.names]
        return True

    def block(self, count: int, setup: str, draw: Callable[[Body], None]) -> list[str]:
        """The lines of a block that begins in the state after `setup`; nothing of what they do stays."""
        before, lines, names = self._snapshot(), self.lines, list(self.names)
        self.lines, self.depth = [], self.depth + 1
        try:
            if self.attempt([setup] if setup else ["pass"]):
                self.lines = []
                for _ in range(count):
                    draw(self)
            return self.lines
        finally:
            self._restore(before)
            self.lines, self.names, self.depth = lines, names, self.depth - 1

    def _moderate(self) -> bool:
        found: list[torch.Tensor] = []
        for name, value in self.namespace.items():
            found += _tensors(value) if name[:2] != "__" else []
        return all(
            one.numel() <= MOST and (not one.is_floating_point() or bool((one.detach().float().abs() < LARGEST).all()))
            for one in found
        )

    def _snapshot(self) -> tuple[set[str], dict[str, Any]]:
        kept = {name: one for name, one in self.namespace.items() if isinstance(one, _KEPT) and name[:2] != "__"}
        return set(self.namespace), copy.deepcopy(kept)

    def _restore(self, before: tuple[set[str], dict[str, Any]]) -> None:
        names, values = before
        for name in [one for one in self.namespace if one not in names]:
            del self.namespace[name]
        self.namespace.update(values)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [one for part in value for one in _tensors(part)]
    if isinstance(value, dict):
        return [one for part in value.values() for one in _tensors(part)]
    if isinstance(value, nn.Module):
        return [*value.parameters(), *value.buffers()]
    return []
