"""The part of the shared runtime that tells at once whether any of the dictionaries that guards rely on has changed."""

from __future__ import annotations

CLOCK = '''\
# Whether any dictionary that is watched has changed: one question for all of them, however many they are
def _clock() -> Callable[[], int]:
    """From Python 3.12 on PyTorch numbers the changes of all dictionaries that it was asked about, one after the
    other. So a dictionary of our own that is changed twice has successive numbers only if no other has changed. The
    function gives the same number, never 0, for as long as that is so; all kernel modules of a process share it. Where
    there is no such thing it gives 0."""
    if _version is None or sys.version_info < _CLOCKED:
        return lambda: 0
    shared = vars(sys.modules.setdefault("_mugraph_clock", ModuleType("_mugraph_clock")))
    own, state, fresh = shared.setdefault("state", ({0: False}, [0, 0], itertools.count(1)))

    def tick() -> int:
        own[0] = not own[0]
        now = _version(own)
        if now != state[0] + 1:
            state[1] = next(fresh)  # before the next line: another thread that sees that one sees this one
        state[0] = now
        return state[1]

    return tick if _is_sound(tick) else lambda: 0


_CLOCKED = (3, 12)


def _changes() -> tuple[list[dict[Any, Any]], tuple[Callable[[], object], ...]]:
    """Dictionaries of every kind, and every kind of change of one of them."""
    kind, module, plain = type("_Sample", (), {"a": 1}), ModuleType("sample"), {"a": 1}
    thing = kind()
    return [*_inside_of(kind), vars(module), plain, vars(thing)], (
        *(lambda one=one: setattr(one, "a", 2) for one in (kind, module, thing)),
        *(lambda one=one: setattr(one, "b", 3) for one in (kind, module, thing)),
        *(lambda one=one: delattr(one, "a") for one in (kind, module, thing)),
        lambda: plain.update(a=2), lambda: plain.pop("a"), lambda: plain.setdefault("b", 4), plain.clear,
    )


def _is_sound(tick: Callable[[], int]) -> bool:
    """Whether every kind of change is told, and nothing else."""
    places, changes = _changes()
    before = [*map(_version, places)]
    for change in changes:
        seen = [tick() for _ in range(3)]
        change()
        seen += [tick() for _ in range(3)]
        if len({*seen[1:3]}) != 1 or len({*seen[3:]}) != 1 or seen[2] == seen[3]:
            return False
    return len(places) == 4 and before != [*map(_version, places)]


_tick = _clock()
'''
