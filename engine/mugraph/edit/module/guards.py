"""The part of the shared runtime that checks that classes and functions of the user's program still are what was
analysed. ran.py writes the tables that it reads."""

from __future__ import annotations

GUARDS = '''\
# Whether the program is what it was when the regions were analysed
_ACCESS = attrgetter("__call__", "_call_impl", "__getattribute__", "__getattr__")
_ATTRIBUTES = attrgetter("__getattribute__", "__getattr__")
_OF_MODULES = _ACCESS(torch.nn.Module)
_KIND = attrgetter("__mro__", "__class__")
_CALLED = attrgetter("__class__.__call__", "__getattribute__")
_FIXED = attrgetter("__code__", "__defaults__", "__kwdefaults__")
_OWN_ACCESS = {"__call__", "__getattribute__", "__getattr__"}
_HOOKS = [
    value
    for name, value in vars(torch.nn.modules.module).items()
    if name.startswith(("_global_forward", "_global_backward")) and isinstance(value, dict)
]
_COMPARED = (
    "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_exceptiontable",
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount",
)
_FILE = globals().get("_FOR_FILE") or os.path.join(os.path.dirname(os.path.realpath(__file__)), _SOURCE)
_copies: list[tuple[str, ModuleType]] = []
_imported = 0, 0


class _Unknown(dict[str, object]):
    """Stands for the names of the file for as long as it is not imported."""

    def __missing__(self, name: str) -> object:
        _find_copies()
        if _here is self:
            raise KeyError(name)
        return _here[name]


_here: dict[str, object] = _Unknown()


class _Check(NamedTuple):
    """What something reads as, and must. inside: dictionaries that hold all of it; none: it stands in no dictionary"""

    read: Callable[[Any], object]
    thing: Any
    expected: object
    inside: tuple[dict[Any, Any], ...] = ()


_NEVER = [_Check(id, None, None)]
_met: dict[tuple[int, str | tuple[str, ...]], tuple[object, list[_Check]]] = {}


class _Always(NamedTuple):
    """What no dictionary tells, and is compared at each call: functions with their code and defaults, classes with
    theirs and those they come from; others by how they are read: of what, and what it was"""

    functions: list[tuple[Any, ...]]
    kinds: list[tuple[Any, ...]]
    others: list[tuple[Callable[[Any], object], list[Any], list[object]]]


class _World(NamedTuple):
    """What a region relies on, as it was met. dicts: where most of it stands; version: theirs, all together, when all
    of it held (each only grows); time: when it was last found to hold, by `_tick`; native: what asks the same in C"""

    things: tuple[object, ...]
    dicts: list[dict[Any, Any]]
    version: list[int]
    always: _Always
    checks: list[_Check]
    time: list[int | None]
    native: list[Any]


_worlds: dict[str, _World] = {}


class _Code(NamedTuple):
    """A function that ran. text: of its definition, "" of one of PyTorch's or Python's; edited: with the kernels of
    this module written into it; free: variables around it that it reads; defaults, wrapped: its default arguments, and
    the functions that decorators put around it; around: those of these whose code is known; outside: names of its file
    that hold a library's things ("": a builtin); imported: names that its file imports, which the compiler treats in a
    way of their own."""

    qualname: str
    text: str = ""
    edited: str = ""
    free: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    wrapped: tuple[str, ...] = ()
    outside: dict[str, str] = {}
    imported: tuple[str, ...] = ()
    around: tuple[dict[str, Any], ...] = ()


class _Ran(NamedTuple):
    """A class or a function that ran. methods: its functions ("": itself), with those of bases that they hide; library:
    whether it is PyTorch's; module: whether it is a torch.nn.Module; members: names of its parts; properties: computed
    attributes"""

    methods: dict[str, tuple[Any, ...]]
    library: bool = False
    module: bool = False
    members: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()


_CODE = {what: _Ran(**ran) for what, ran in _RAN.items()}
_HIDING = {what: frozenset(ran.methods) | ran.members for what, ran in _CODE.items()}


@_constant
def _same_code(region: str, *things: object) -> bool:
    """Whether classes and functions have the code that was analysed, PyTorch is as it came (no hooks on all modules,
    none of the functions replaced that regions call), and the file's names mean what they meant."""
    world = _worlds.get(region)
    if world is None or not all(map(is_, things, world.things)):
        if _find_copies():
            return False  # what was read of the file was read of another module
        world = _met_world(region, things)
    elif world.native and world.native[0](things):
        return bool(_copies)
    if any(_HOOKS):
        return False
    if not _still(world):
        return _all_hold(region, world)
    if _native and not world.native:
        world.native.extend(_shortened(things, _HOOKS, world.always, world.dicts))
    try:
        return bool(_copies) if _as_ever(world.always) else _all_hold(region, world)
    except (AttributeError, KeyError):  # what was a function of Python's is something else, or nothing
        return False


def _is_still(region: str, at: int, thing: object) -> bool:
    """Whether a thing is the one, of those of a region, whose code was compared."""
    world = _worlds.get(region)
    return world is not None and world.things[at] is thing


def _as_ever(always: _Always) -> bool:
    """Whether it is all the same; what is only equal is compared anew."""
    for function, code, defaults, keywords in always.functions:
        if function.__code__ is not code or function.__defaults__ is not defaults:
            return False
        if function.__kwdefaults__ != keywords:
            return False
    for kind, bases, own in always.kinds:
        if kind.__mro__ is not bases or kind.__class__ is not own:
            return False
    for read, those, expected in always.others:
        if [*map(read, those)] != expected:
            return False
    return True


def _all_hold(region: str, world: _World) -> bool:
    """As `_same_code`, with everything compared anew."""
    if _find_copies():
        return False  # what was read of the file was read of another module
    version = [sum(map(_version, world.dicts))]
    try:
        for read, thing, expected, _ in world.checks:
            if read(thing) != expected:
                if not (read in (_ACCESS, _ATTRIBUTES) and torch.compiler.is_exporting()):  # which patches them
                    return False
                version = []
    except (AttributeError, KeyError):
        return False
    world.version[:] = version
    return bool(_copies)


def _met_world(region: str, things: tuple[object, ...]) -> _World:
    """What is compared of things that are met for the first time, and of what all regions rely on."""
    checks = [_Check(_moved, sys.modules, False, (sys.modules,)), *_FUNCTIONS]
    checks += [check for thing, what in zip(things, _REGIONS[region]) for check in _known(thing, what)]
    checks += [check for _, module in _copies for check in _names_of(vars(module))]
    checks = list({id(check): check for check in checks}.values())
    always = [check for check in checks if _version is None or not check.inside]
    dicts = {id(one): one for check in checks for one in check.inside if _version is not None}
    functions = [(check.thing, *check.expected) for check in always if check.read is _FIXED]
    kinds = [(check.thing, *check.expected) for check in always if check.read is _KIND]
    reads = {id(check.read): check.read for check in always if check.read is not _FIXED and check.read is not _KIND}
    alike = [(read, [check for check in always if check.read is read]) for read in reads.values()]
    columns = [(read, [check.thing for check in some], [check.expected for check in some]) for read, some in alike]
    same = _Always(functions, kinds, columns)
    world = _worlds[region] = _World(things, list(dicts.values()), [], same, checks, [None], [])
    return world


def _known(thing: Any, what: str | tuple[str, ...]) -> list[_Check]:
    """What is compared of a class or a function. Code is compared when it is met, objects from then on. what: which
    one it must be; or names of modules that are found in a module of any class"""
    if torch.compiler.is_exporting() and isinstance(thing, type):
        thing = _behind(thing)
    met = _met.get((id(thing), what))
    if met is None:
        if isinstance(what, tuple):
            checks = _meet_owner(thing, frozenset(what))
        else:
            methods = _CODE[what].methods
            checks = _meet(thing, _Code(**methods[""][0])) if "" in methods else _meet_class(thing, what)
        if len(_met) > 1000:  # classes that were made anew again and again
            _met.clear()
        met = _met[id(thing), what] = thing, checks
    return met[1]


def _behind(kind: type) -> type:
    """While torch.export records: the class of the module behind what is put in its place."""
    return kind.__bases__[-1] if any(base.__name__ == "_AttrProxy" for base in kind.__mro__) else kind


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


@_constant
def _unchanged(kind: type, what: str) -> bool:
    """Whether a class runs the code that was analysed."""
    for read, thing, expected, _ in _known(kind, what):
        if read(thing) != expected and not (read is _ACCESS and torch.compiler.is_exporting()):  # which patches calls
            return False
    return True


@_constant
def _inside(function: object, test: Callable[[Any], bool]) -> bool:
    """What must hold of variables that a function has from those around it."""
    return test(function)
'''
