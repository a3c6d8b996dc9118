"""The part of a kernel module that checks that the user's program still is what was analysed. ran.py writes its
tables."""

from __future__ import annotations

GUARDS = '''\
# Whether the program is what it was when the regions were analysed
_ACCESS = attrgetter("__call__", "_call_impl", "__getattribute__", "__getattr__")
_OF_MODULES = _ACCESS(torch.nn.Module)
_OWN_ACCESS = {"__call__", "__getattribute__", "__getattr__"}
_HOOKS = [
    value
    for name, value in vars(torch.nn.modules.module).items()
    if name.startswith(("_global_forward", "_global_backward")) and isinstance(value, dict)
]
_BEFORE_FORWARD = {"_call_impl", "_wrapped_call_impl", "_compiled_call_impl", "_slow_forward"}
_COMPARED = (
    "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_exceptiontable",
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount",
)
_PLAIN_ACCESS = {
    "__getattribute__": (object.__getattribute__,),
    "__getattr__": (None, torch.nn.Module.__getattr__),
}
_Check = tuple[Callable[[Any], object], Any, object]
_NEVER: list[_Check] = [(id, None, None)]
_met: dict[tuple[int, str], tuple[object, list[_Check]]] = {}
_FILE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "@FILE@")
_here: dict[str, object] = {}
_copies: tuple[int, list[tuple[str, ModuleType]]] = (0, [])


class _Code(NamedTuple):
    """A function that ran. text: of its definition, "" of one of PyTorch's; edited: with the kernels of this module
    written into it; free: variables around it that it reads; defaults, wrapped: its default arguments, and the
    functions of libraries around it; outside: names of its file that hold a library's things ("": a builtin);
    imported: names that its file imports, which the compiler treats in a way of their own."""

    qualname: str
    text: str = ""
    edited: str = ""
    free: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    wrapped: tuple[str, ...] = ()
    outside: dict[str, str] = {}
    imported: tuple[str, ...] = ()


def _is(module: torch.nn.Module, what: str) -> bool:
    """Whether a module runs the code that was analysed, and nothing is hooked into it or put before it."""
    own = module.__dict__
    if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]:
        return False
    if torch.compiler.is_compiling():
        same = _unchanged(type(module), what)
        same = same or (torch.compiler.is_exporting() and _unchanged(_class_of(module), what))
        return same and not _hides(own, _HIDING[what])
    for read, thing, expected in (_met.get((id(type(module)), what)) or _met_class(type(module), what))[1]:
        if read(thing) != expected:
            return False
    return _HIDING[what].isdisjoint(own)


def _class_of(module: torch.nn.Module) -> type:
    """While torch.export records: its class, or that of the module behind what is put in its place."""
    kind = type(module)
    if not torch.compiler.is_dynamo_compiling():
        return kind.__bases__[-1] if any(base.__name__ == "_AttrProxy" for base in kind.__mro__) else kind
    return kind


def _hides(own: dict[str, object], names: frozenset[str]) -> bool:
    """Whether an object has any of these names of its own."""
    if not torch.compiler.is_compiling():
        return not names.isdisjoint(own)
    for name in names:  # as torch.compile can follow it
        if name in own:
            return True
    return False


def _is_object(thing: object, what: str) -> bool:
    """Whether an object's class has the code that was analysed, and the object puts nothing before it."""
    return _unchanged(type(thing), what) and not _hides(getattr(thing, "__dict__", {}), _HIDING[what])


@torch.compiler.assume_constant_result
def _unchanged(kind: type, what: str) -> bool:
    """Whether a class runs the code that was analysed. Code is compared when a class is met, objects from then on."""
    for read, thing, expected in (_met.get((id(kind), what)) or _met_class(kind, what))[1]:
        if read(thing) != expected and not (read is _ACCESS and torch.compiler.is_exporting()):  # which patches calls
            return False
    return True


def _met_class(kind: type, what: str) -> tuple[object, list[_Check]]:
    """What is compared of a class that is met for the first time."""
    met = _met[id(kind), what] = kind, _meet_class(kind, what)
    return met


@torch.compiler.assume_constant_result
def _runs(function: object, what: str) -> bool:
    """Whether a function is the code that was analysed."""
    met = _met.get((id(function), what))
    if met is None:
        met = _met[id(function), what] = function, _meet(function, _RAN[what][""][0])
    for read, thing, expected in met[1]:
        if read(thing) != expected:
            return False
    return True


@torch.compiler.assume_constant_result
def _inside(function: object, test: Callable[[Any], bool]) -> bool:
    """What must hold of variables that a function has from those around it."""
    return test(function)


def _on_default_device(device: torch.device) -> bool:
    """Whether tensors that are made without saying where would be on this device."""
    default = torch.get_default_device()
    return default.type == device.type and default.index in (None, device.index)


def _default_type(name: str) -> bool:
    return str(torch.get_default_dtype()) == name


def _equals(value: object, constant: object) -> bool:
    """Whether it is the same constant: 1, 1.0 and True are not, nor is a tensor that holds it."""
    if type(value) is not type(constant) and not isinstance(value, torch.SymInt):
        return False
    if type(value) is tuple or type(value) is list:
        if len(value) != len(constant):
            return False
        for one, other in zip(value, constant):
            if not _equals(one, other):
                return False
        return True
    if type(value) is dict:
        return list(value) == list(constant) and all(_equals(value[key], constant[key]) for key in constant)
    return value == constant


@torch.compiler.assume_constant_result
def _is_the(thing: object, name: str) -> bool:
    """Whether something is what a library has under a name."""
    return thing is _named(name)


def _meet_class(kind: type, what: str) -> list[_Check]:
    """What to compare with from now on."""
    methods, name = _RAN[what], f"{kind.__module__}.{kind.__qualname__}"
    if _named(what) is not kind if what in _LIBRARY else what not in (name, kind.__qualname__):
        return _NEVER
    owners = kind.__mro__[: next(n for n, owner in enumerate(kind.__mro__) if owner in (torch.nn.Module, object))]
    attributes = [(name, raw) for owner in owners for name, raw in vars(owner).items()]
    computed = {name for name, raw in attributes if hasattr(type(raw), "__set__")}
    if not computed <= _PROPERTIES[what] or _MEMBERS[what] & {name for name, _ in attributes}:
        return _NEVER
    checks: list[_Check] = [(attrgetter("__mro__", "__class__"), kind, (kind.__mro__, kind.__class__))]
    checks += [(len, vars(owner), len(vars(owner))) for owner in owners]  # nothing was put beside its methods
    if what not in _ACCESSED:  # it takes neither calls nor attributes into its own hands
        access = _ACCESS if what in _MODULES else attrgetter("__class__.__call__", "__getattribute__")
        expected = _OF_MODULES if what in _MODULES else (kind.__class__.__call__, object.__getattribute__)
        checks.append((access, kind, expected))
    for name, chain in methods.items():
        codes = list(chain)
        for owner in owners:
            raw = vars(owner).get(name)
            if raw is None:
                continue
            met = _meet(raw, codes.pop(0)) if codes else _NEVER
            if met is _NEVER:
                return _NEVER
            checks += [(attrgetter(name), owner, getattr(owner, name)), *met]
        if codes:
            return _NEVER
    if len(_met) > 1000:  # classes that were made anew again and again
        _met.clear()
    return checks


def _meet(raw: object, code: _Code) -> list[_Check]:
    function = getattr(raw, "__func__", None) or getattr(raw, "fget", None) or getattr(raw, "func", None) or raw
    around = []
    while isinstance(function, FunctionType) and "__wrapped__" in vars(function):
        around.append(f"{function.__globals__.get('__name__')}.{function.__code__.co_qualname}")
        function = vars(function)["__wrapped__"]
    if not isinstance(function, FunctionType) or tuple(around) != code.wrapped:
        return _NEVER
    own, space, keywords = function.__code__, function.__globals__, function.__kwdefaults__ or {}
    names, values, absent = (), (), frozenset()
    if code.text:
        defaults = (*(function.__defaults__ or ()), *(keywords[name] for name in sorted(keywords)))
        free = tuple(name for name in own.co_freevars if name != "__class__")
        if free != code.free or tuple(map(_said, defaults)) != code.defaults:
            return _NEVER
        if not any(_alike(own, other) for text in (code.text, code.edited) for other in _compiled(code, text)):
            return _NEVER
        names = tuple(name for name, dotted in code.outside.items() if dotted)
        values = tuple(_named(code.outside[name]) for name in names)
        absent = frozenset(code.outside.keys() - set(names))
    else:  # PyTorch's own
        file = sys.modules.get(str(space.get("__name__")))
        ours = str(space.get("__name__")).startswith("torch.") and file is not None and vars(file) is space
        names = tuple(name for name in own.co_names if name in space)
        values = tuple(space[name] for name in names)
        if not ours or own.co_qualname != code.qualname or not all(map(_is_torchs, values)):
            return _NEVER
    fixed = attrgetter("__code__", "__defaults__", "__kwdefaults__")
    keywords = dict(keywords) if function.__kwdefaults__ is not None else None
    checks: list[_Check] = [(fixed, function, (own, function.__defaults__, keywords))]
    if names:
        checks.append((itemgetter(*names, names[0]), space, (*values, values[0])))
    if absent:
        checks.append((absent.isdisjoint, space, True))
    try:
        return checks if all(read(thing) == expected for read, thing, expected in checks) else _NEVER
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
    lines = [f"import {name}" for name in code.imported]
    lines += [indent[:depth] + head for depth, head in enumerate(heads)]
    found, waiting = [], [compile("\\n".join([*lines, text]), code.qualname, "exec", dont_inherit=True)]
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


@torch.compiler.assume_constant_result
def _undisturbed() -> bool:
    """Whether PyTorch is as it came (no hooks on all modules, none of the functions replaced that regions call), and
    names in @FILE@ mean what they meant there, in each module that was made of it."""
    global _copies, _here
    modules, (count, copies) = sys.modules, _copies
    moved = len(modules) != count
    for name, module in copies:
        moved = moved or modules.get(name) is not module
    if moved:
        copies = [(name, module) for name, module in list(modules.items()) if _is_file(module)]
        _copies = len(modules), copies
        _here = vars(copies[0][1]) if copies else {}
    if any(_HOOKS):
        return False
    try:
        for space, read, values in _FUNCTIONS:
            if read(space) != values:
                return False
    except AttributeError:  # what was a function of Python's is something else, or nothing
        return False
    for _, module in copies:
        names = vars(module)
        for name, value in _OUTSIDE:
            if names.get(name) is not value:
                return False
        if not names.keys().isdisjoint(_BUILTINS):
            return False
        if names is not _here:
            for name in _OWN:
                if names.get(name) is not _here.get(name):
                    return False
    return bool(copies)


def _is_file(module: object) -> bool:
    name = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return isinstance(name, str) and os.path.basename(name) == "@FILE@" and os.path.realpath(name) == _FILE


def _as_they_came(owner: str, *names: str) -> tuple[object, attrgetter, tuple[object, ...]]:
    """Where a library has functions, how they are read there, and what they are; None for one that is not its own."""
    space = torch.Tensor if owner == "Tensor" else importlib.import_module(owner)
    library = "torch" if owner == "Tensor" else owner.partition(".")[0]
    expected = []
    for name in names:
        value = getattr(space, name, None)
        own = not isinstance(value, FunctionType) or str(value.__globals__.get("__name__")).partition(".")[0] == library
        expected.append((name, value if own else None))
        if isinstance(value, FunctionType):
            expected += [(f"{name}.__code__", value.__code__), (f"{name}.__defaults__", value.__defaults__)]
    read = attrgetter(*(path for path, _ in expected), names[0])
    return space, read, (*(value for _, value in expected), expected[0][1])
'''
