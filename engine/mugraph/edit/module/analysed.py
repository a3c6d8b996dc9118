"""The part of the shared runtime that checks that the modules of a user's model still are what was analysed, and
remembers that they are until one of their dictionaries changes."""

from __future__ import annotations

ANALYSED = '''\
# Modules as they were analysed
class _Seen(NamedTuple):
    """What `_as_analysed` said yes of, and what is compared when it is asked again. dicts: of classes, files, modules;
    hooks: what must be empty; version, always, time, native: as in a _World; alive: the modules: nothing else has their
    numbers"""

    things: list[int]
    modules: list[int]
    dicts: list[dict[Any, Any]]
    version: list[int]
    hooks: list[Any]
    always: _Always
    alive: list[weakref.ref[Any]]
    time: list[int | None]
    native: list[Any]


_seen: dict[tuple[str, int], _Seen] = {}
_last: dict[tuple[str, int], int] = {}
_HOOKED = itemgetter("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _as_analysed(
    region: str, things: tuple[object, ...], modules: tuple[Any, ...], fit: Callable[..., bool]
) -> bool:
    """Whether classes and functions have the code that was analysed, and modules fit: `fit` reads their hooks and what
    they keep in their own dictionaries (constants, whether a parameter is there), and their classes."""
    if _dynamo():
        return _same_code(region, *things) and fit(*modules)
    one = _seen.get((region, id(modules[0])))
    if one is not None:
        if one.native and one.native[0](things, modules):
            return True
        same = [*map(id, things)] == one.things and [*map(id, modules)] == one.modules
        if same and _still(one) and not any(one.hooks) and _as_ever(one.always):
            if _native and not one.native:
                one.native.extend(_shortened((*things, *modules), one.hooks, one.always, one.dicts))
            return True
    return _same_code(region, *things) and _fit_now(region, things, modules, fit)


def _still(one: _World | _Seen) -> bool:
    """Whether no dictionary of its own has changed."""
    native = one.native[0] if one.native else None
    time = native.now() if native else 0  # before what is asked next: what changes after it is seen the next time
    now = _tick()
    if now != one.time[0]:
        if [sum(map(_version, one.dicts))] != one.version:
            return False
        one.time[0] = now or None
    if native:
        native.at(time)
    return True


def _shortened(
    things: tuple[object, ...], hooks: list[Any], always: _Always, dicts: list[dict[Any, Any]]
) -> list[Any]:
    """What asks in C whether things are these and all is as it was; nothing where that cannot be."""
    try:
        return [_native.Held(things, hooks, *always, dicts)]
    except TypeError:  # something is of a class of its own, which only Python can ask
        return []


def _fit_now(region: str, things: tuple[object, ...], modules: tuple[Any, ...], fit: Callable[..., bool]) -> bool:
    """Whether modules fit; remembered if nothing has changed since it was asked last, and changes can be told."""
    key, world = (region, id(modules[0])), _worlds[region]
    dicts = {id(own): own for one in modules for own in (vars(one), *map(vars(one).get, ("_parameters", "_modules")))}
    dicts |= {id(own): own for own in world.dicts}
    told = _version is not None and world.version and all(type(own) is dict for own in dicts.values())
    version = sum(map(_version, dicts.values())) if told else -1
    if not fit(*modules):
        _seen.pop(key, None)
        return False
    if len(_last) > 1000:
        _seen.clear()
        _last.clear()
    if told and _last.get(key) == version and all(map(_keeps_parts, modules)):
        hooks = [*_HOOKS, *(hooks for one in modules for hooks in _HOOKED(vars(one)))]
        alive = [weakref.ref(one, lambda _: _seen.pop(key, None)) for one in modules]
        numbers = [*map(id, things)], [*map(id, modules)]
        _seen[key] = _Seen(*numbers, [*dicts.values()], [version], hooks, world.always, alive, [None], [])
    else:
        _seen.pop(key, None)
    _last[key] = version
    return True


def _keeps_parts(module: Any) -> bool:
    """Whether a module's parts are modules and tensors, and its other attributes stand in dictionaries whose changes
    are counted."""
    own, parts = vars(module), (torch.nn.Module, torch.Tensor, type(None))
    kept = [value for name in ("_parameters", "_buffers", "_modules") for value in own[name].values()]
    classes = [kind for kind in type(module).__mro__ if kind not in (torch.nn.Module, object)]
    return all(isinstance(value, parts) for value in kept) and bool(_inside_of(*classes))
'''
