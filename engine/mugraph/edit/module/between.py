"""The part of the shared runtime that launches kernels in C where PyTorch computes something between them."""

from __future__ import annotations

BETWEEN = '''\
# Launches of kernels and of PyTorch's own between them
class _Between(_Straight):
    """Kernels that follow one another are launched in C; what PyTorch computes is called from Python as it is written.
    Each launch asks itself whether all is as it was: PyTorch's may be done again, as nothing but its result changes."""

    def between(self) -> Callable[..., Any]:
        """The same, where PyTorch computes something in between: kernels that follow one another are launched in C."""
        lines, waiting, launches = list[str](), list[Any](), iter(self.launches)
        called = f"_ordinary({', '.join(self.parameters)})"
        held = {"_ordinary": self.held["_ordinary"], "_empty": _empty_on_gpu}
        held |= {name: thing for name, thing in self.held.items() if name.startswith("_type")}
        for part in self.body:
            if self._kernel(part) is not None:
                waiting.append(next(launches))
                continue
            own = self._lines(part)
            if waiting and own:
                name = f"_launch_{len(held)}"
                held[name], names = self._together(waiting)
                lines += [f"if not {name}({', '.join(names)}):", f"    return {called}"]
                waiting = []
            lines += own
        assert not waiting
        first = [line for line in self._scratch() if line.startswith("_scratch = ")]
        return _written(self.name, [*self.parameters], held, [*first, *lines], self.kernels)

    def _together(self, launches: list[Any]) -> tuple[Callable[..., Any], list[str]]:
        """What launches kernels that follow one another, and says whether it did; and the tensors that it is given."""
        of: dict[str, tuple[int, int]] = {}
        given: list[str] = []
        for name in dict.fromkeys(name for *_, names in launches for name in names):
            where, offset = self.offsets.get(name, (name, 0))
            tensor = where or "_scratch"
            given += [tensor] if tensor not in given else []
            of[name] = given.index(tensor), offset
        ways = [1 if name == "_scratch" or name in self.even else 2 for name in given]
        return self._in_c(lambda *_: False, [], False, ways, (None,) * len(given), launches, of, ()), given
'''
