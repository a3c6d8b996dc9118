"""The part of the shared runtime that meets a class or a function for the first time: is it the code that was analysed,
and what is compared with from then on."""

from __future__ import annotations

MEETING = '''\
# What is met for the first time
def _meet_class(kind: type, what: str) -> list[_Check]:
    """What to compare with from now on."""
    ran, name = _CODE[what], f"{kind.__module__}.{kind.__qualname__}"
    if _named(what) is not kind if ran.library else what not in (name, kind.__qualname__):
        return _NEVER
    owners = kind.__mro__[: next(n for n, owner in enumerate(kind.__mro__) if owner in (torch.nn.Module, object))]
    attributes = [(name, raw) for owner in owners for name, raw in vars(owner).items()]
    computed = {name for name, raw in attributes if hasattr(type(raw), "__set__")}
    if not computed <= ran.properties or ran.members & {name for name, _ in attributes}:
        return _NEVER
    checks = [_Check(_KIND, kind, _KIND(kind))]
    checks += [_Check(len, vars(owner), len(vars(owner)), _inside_of(owner)) for owner in owners]  # nothing was added
    if not ran.methods.keys() & _OWN_ACCESS:  # it takes neither calls nor attributes into its own hands
        if ran.module:
            checks.append(_Check(_ACCESS, kind, _OF_MODULES, _inside_of(*owners, torch.nn.Module)))
        else:
            checks.append(_Check(_CALLED, kind, (kind.__class__.__call__, object.__getattribute__)))
    for name, chain in ran.methods.items():
        codes = list(chain)
        for owner in owners:
            raw = vars(owner).get(name)
            if raw is None:
                continue
            met = _meet(raw, _Code(**codes.pop(0))) if codes else _NEVER
            if met is _NEVER:
                return _NEVER
            checks += [_Check(attrgetter(name), owner, getattr(owner, name), _inside_of(owner)), *met]
        if codes:
            return _NEVER
    return checks


def _meet_owner(kind: type, names: frozenset[str]) -> list[_Check]:
    """What to compare of a module's class, so that what is in `_modules` is what its attributes are."""
    bases = kind.__mro__
    found = {name for base in bases for name in vars(base)}
    if torch.nn.Module not in bases or names & found or _ATTRIBUTES(kind) != _ATTRIBUTES(torch.nn.Module):
        return _NEVER
    checks = [_Check(_KIND, kind, _KIND(kind)), _Check(_ATTRIBUTES, kind, _ATTRIBUTES(kind), _inside_of(*bases[:-1]))]
    return checks + [_Check(_namer(names), vars(base), True, _inside_of(base)) for base in bases[:-1]]


def _namer(names: frozenset[str]) -> Callable[[Any], bool]:
    return lambda space: names.isdisjoint(space)


def _inside_of(*kinds: type) -> tuple[dict[str, Any], ...]:
    """The dictionaries behind classes' attributes; none where they may be elsewhere."""
    found = [gc.get_referents(vars(kind)) for kind in kinds]
    plain = all(type(kind) in (type, type(torch.Tensor)) for kind in kinds)
    return tuple(one[0] for one in found) if plain and all([*map(type, one)] == [dict] for one in found) else ()


def _meet(raw: object, code: _Code) -> list[_Check]:
    function = getattr(raw, "__func__", None) or getattr(raw, "fget", None) or getattr(raw, "func", None) or raw
    around, known = [], {one["qualname"]: one for one in code.around}
    checks = []
    while isinstance(function, FunctionType) and "__wrapped__" in vars(function):
        around.append(f"{function.__globals__.get('__name__')}.{function.__code__.co_qualname}")
        if function.__code__.co_qualname in known:
            met = _meet_alone(function, _Code(**known[function.__code__.co_qualname]))
            if met is _NEVER:
                return _NEVER
            checks += met
        function = vars(function)["__wrapped__"]
    if not isinstance(function, FunctionType) or tuple(around) != code.wrapped:
        return _NEVER
    met = _meet_alone(function, code)
    return _NEVER if met is _NEVER else [*checks, *met]


def _meet_alone(function: FunctionType, code: _Code) -> list[_Check]:
    """Without what is around it."""
    own, space, keywords = function.__code__, function.__globals__, function.__kwdefaults__ or {}
    names, values, absent = (), (), frozenset()
    if code.text:
        defaults = (*(function.__defaults__ or ()), *(keywords[name] for name in sorted(keywords)))
        free = tuple(name for name in own.co_freevars if name != "__class__")
        if free != code.free or tuple(map(_said, defaults)) != code.defaults:
            return _NEVER
        if not any(_alike(own, other) for text in (code.text, code.edited) for other in _compiled(code, text)):
            if not _only_edited(function, code):
                return _NEVER
        names = tuple(name for name, dotted in code.outside.items() if dotted)
        values = tuple(_named(code.outside[name]) for name in names)
        absent = frozenset(code.outside.keys() - set(names))
    else:  # PyTorch's own, or Python's
        file = sys.modules.get(str(space.get("__name__")))
        root = str(space.get("__name__")).partition(".")[0]
        torchs = root == "torch" and file is not None and vars(file) is space
        ours = torchs or root in sys.stdlib_module_names
        names = tuple(name for name in own.co_names if name in space)
        values = tuple(space[name] for name in names)
        if not ours or own.co_qualname != code.qualname or not all(map(_is_torchs, values)):
            return _NEVER
    keywords = dict(keywords) if function.__kwdefaults__ is not None else None
    checks = [_Check(_FIXED, function, (own, function.__defaults__, keywords))]
    if names:
        checks.append(_Check(itemgetter(*names, names[0]), space, (*values, values[0]), (space,)))
    if absent:
        checks.append(_Check(absent.isdisjoint, space, True, (space,)))
    try:
        return checks if all(read(thing) == expected for read, thing, expected, _ in checks) else _NEVER
    except KeyError:
        return _NEVER


def _is_torchs(value: object) -> bool:
    """Whether what PyTorch's code reads of its module is PyTorch's, or Python's, own."""
    if isinstance(value, (ModuleType, FunctionType)):
        root = str((vars(value) if isinstance(value, ModuleType) else value.__globals__).get("__name__"))
    else:
        root = str(getattr(value, "__module__", None) or type(value).__module__)
    return root.partition(".")[0] in ("torch", *sys.stdlib_module_names) and type(value) is not SimpleNamespace


def _compiled(code: _Code, text: str) -> list[CodeType]:
    """The code objects of a definition, compiled inside the classes and functions that it stands in."""
    if not text:
        return []
    *around, last = code.qualname.split(".")
    heads = []
    for part, after in zip(around, [*around[1:], ""]):
        if part != "<locals>":
            heads.append(f"def {part}({', '.join(code.free)}):" if after == "<locals>" else f"class {part}:")
    indent = text[: len(text) - len(text.lstrip(" \\t"))]
    if last == "<lambda>":
        indent, text = " " * len(heads), " " * len(heads) + f"({text}\\n)"
    elif indent and not heads:
        heads = ["if True:"]
    lines = [indent[:depth] + head for depth, head in enumerate(heads)] + [text]
    imports = {code.imported}
    if "_FOR_IMPORTS" in globals():  # each cell of a notebook imports what it does
        imports.add(globals()["_FOR_IMPORTS"].get(code.qualname.partition(".")[0], ()))
    texts = ["\\n".join([*(f"import {name}" for name in names), *lines]) for names in imports]
    found, waiting = [], [compile(one, code.qualname, "exec", dont_inherit=True) for one in texts]
    while waiting:
        inner = [part for part in waiting.pop().co_consts if isinstance(part, CodeType)]
        found += [part for part in inner if part.co_name == last]
        waiting += inner
    return found


def _alike(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects do the same, wherever they stand."""
    if any(getattr(one, name) != getattr(other, name) for name in _COMPARED):
        return False
    if (one.co_flags ^ other.co_flags) & 0x3FF or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _alike(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else _literal(a) == _literal(b)
        for a, b in zip(one.co_consts, other.co_consts)
    )


def _literal(value: object) -> object:
    return frozenset(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _said(value: object) -> str:
    """What a default argument is, as text."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(_said(item) for item in value)},)"
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device", "memory_format", "layout"):
        return str(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}"


def _named(name: str) -> object:
    """What a library has under a dotted name; None where there is no such thing."""
    if name not in sys.modules and "." in name:
        return getattr(sys.modules.get(name.rpartition(".")[0]), name.rpartition(".")[2], None)
    return sys.modules.get(name)


def _came_since(name: str) -> object:
    """The same of a library that was imported after this module; None where a function is not the library's own."""
    found = _named(name)
    its_own = not isinstance(found, FunctionType) or _root_of(found) == name.partition(".")[0]
    return found if its_own else None


def _find_copies() -> bool:
    """Finds the modules that were made of the file. Whether there were others before."""
    global _copies, _here, _imported
    modules, before = sys.modules, _copies
    if _moved(modules):
        _copies = [(name, module) for name, module in list(modules.items()) if _is_file(module)]
        _imported = _count(modules)
        if _copies != before:
            _here = vars(_copies[0][1]) if _copies else _Unknown()
            _worlds.clear()
    return _copies != before and bool(before)


@_constant
def _find_file() -> bool:
    """Whether the names of the file are known. A compiler that follows the test could not look for them."""
    if type(_here) is _Unknown:
        _find_copies()
    return type(_here) is not _Unknown


def _moved(modules: dict[str, ModuleType]) -> bool:
    """Whether modules were imported, or forgotten, since then."""
    if not _copies:  # the file may have been imported in the place of a module of its name
        return _count(modules) != _imported
    return len(modules) != _imported[0] or any(modules.get(name) is not module for name, module in _copies)


def _count(modules: dict[str, ModuleType]) -> tuple[int, int]:
    """How many there are, and what changes where one takes another's place."""
    return len(modules), sum(map(id, list(modules.values())))


def _names_of(names: dict[str, object]) -> list[_Check]:
    """What must hold of the names of one of those modules."""
    checks = [_Check(names.keys().isdisjoint, _BUILTINS, True, (names,))] if _BUILTINS else []
    for name, dotted in _OUTSIDE_NAMES.items():
        if _outside[name] is None:
            _outside[name] = _came_since(dotted)
        checks.append(_Check(_reading(name), names, _outside[name], (names,)))
    if names is not _here:
        checks += [_Check(_like_here(name), names, True, (names, _here)) for name in _OWN]
    return checks


def _reading(name: str) -> Callable[[dict[str, object]], object]:
    return lambda names: names.get(name)


def _like_here(name: str) -> Callable[[dict[str, object]], bool]:
    return lambda names: names.get(name) is _here.get(name)


def _is_file(module: object) -> bool:
    if isinstance(module, ModuleType) and vars(module) is globals().get("_FOR_NAMES"):
        return True  # a notebook's, or an interactive session's
    name = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return isinstance(name, str) and os.path.basename(name) == _SOURCE and os.path.realpath(name) == _FILE


def _as_they_came(owner: str, names: tuple[str, ...]) -> list[_Check]:
    """Functions of a library, which must be what they are now, and its own."""
    space = torch.Tensor if owner == "Tensor" else importlib.import_module(owner)
    library = "torch" if owner == "Tensor" else owner.partition(".")[0]
    inside = (vars(space),) if type(space) is ModuleType else ()
    if isinstance(space, type):
        inside = _inside_of(*(kind for kind in space.__mro__ if kind.__flags__ & 1 << 9))  # others cannot be changed
    checks = []
    values = [getattr(space, name, None) for name in names]
    own = [not isinstance(value, FunctionType) or _root_of(value) == library for value in values]
    expected = tuple(value if its else None for value, its in zip(values, own))
    checks.append(_Check(attrgetter(*names, names[0]), space, (*expected, expected[0]), inside))
    for value in values:
        if isinstance(value, FunctionType):
            checks.append(_Check(_FIXED, value, _FIXED(value)))
    return checks


def _root_of(function: FunctionType) -> str:
    return str(function.__globals__.get("__name__")).partition(".")[0]


def _counter() -> Callable[[dict[Any, Any]], int] | None:
    """PyTorch's own count of a dictionary's changes, if it has one and each kind of change counts."""
    count = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "dict_version", None)
    kind, module, plain = type("_Sample", (), {"a": 1}), ModuleType("sample"), {"a": 1}
    thing = kind()
    places = [*_inside_of(kind), vars(module), plain, vars(thing)]
    changes = (
        lambda: [setattr(one, "a", 2) for one in (kind, module, thing)] + [plain.update(a=2)],
        lambda: [setattr(one, "a", 3) for one in (kind, module, thing)] + [plain.__setitem__("a", 3)],
        lambda: [delattr(one, "a") for one in (kind, module, thing)] + [plain.pop("a")],
        lambda: [setattr(one, "b", 4) for one in (kind, module, thing)] + [plain.setdefault("b", 4)],
        lambda: [setattr(kind, "c", 5), *(own.clear() for own in (vars(module), plain, vars(thing)))],
    )
    try:
        seen = [[*map(count, places)]]
        for change in changes:
            change()
            seen += [[*map(count, places)]]
            if seen[-1] != [*map(count, places)]:
                return None
    except (TypeError, AttributeError):
        return None
    grows = all(list(one) == sorted(set(one)) for one in zip(*seen))
    return count if len(places) == 4 and grows and _counts_writes(count) else None


def _counts_writes(count: Callable[[dict[Any, Any]], int]) -> bool:
    """Whether it counts what code that has become fast writes."""
    thing = type("_Sample", (), {})()
    own, seen = vars(thing), []
    for number in range(64):
        thing.a = number
        seen.append(count(own))
    return len(set(seen)) == len(seen)


_version = _counter()
_FUNCTIONS = [check for owner, names in _CALLED_FUNCTIONS.items() for check in _as_they_came(owner, names)]
_outside = {name: _named(dotted) for name, dotted in _OUTSIDE_NAMES.items()}
_find_copies()
'''
