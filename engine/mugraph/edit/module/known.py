"""The part of the shared runtime that remembers a region's answer for the objects that it has been asked of, and asks
in C, with one call, whether it still holds."""

from __future__ import annotations

KNOWN = '''\
# Answers that hold until a dictionary changes
class _Path(NamedTuple):
    """What a region reads: an argument, or what modules hold behind it (`self.mlp.gate.weight`, `self.layers[0]`).
    steps: names, and whether each is an index"""

    argument: int
    steps: list[tuple[Any, bool]]


class _Reads(NamedTuple):
    """Of a region: paths to objects whose classes count, to modules that hooks and constants are asked of, and to
    tensors; functions, each by the names that lead to it, from file to file; arguments that something is read of."""

    objects: list[_Path]
    modules: list[_Path]
    tensors: list[_Path]
    functions: list[list[str]]
    roots: frozenset[int]


class _Answer(NamedTuple):
    """held: what asks whether all is as it was; version: of all dictionaries together, when the answer was found;
    alive: what removes the answer where an object is no more"""

    held: Any
    dicts: list[dict[Any, Any]]
    version: list[int]
    alive: list[weakref.ref[Any]]


_reads: dict[str, _Reads] = {}
_answers: dict[str, dict[int, _Answer]] = {}
_in_c: dict[str, dict[int, Any]] = {}
_tried_at: dict[tuple[str, int], int] = {}
_asking: set[tuple[str, int]] = set()
_never: set[tuple[str, int]] = set()


def _unknown(*_: object) -> bool:
    """What is asked of a region before it has an answer that lasts."""
    return False


def _nothing(*_: object) -> None:
    """What a region is done by, and what gives its tensors, before that."""


def _learn(region: str, *given: Any) -> bool:
    """After a region's test said yes of these arguments: remembers that, where changes can be told. Always True."""
    if _dynamo():
        return True
    reads = _reads.get(region) or _reads.setdefault(region, _what_it_reads(region))
    root = min(reads.roots, default=-1)
    key = id(given[root]) if root >= 0 else 0
    if not _native or (region, key) in _asking or (region, key) in _never or _version is None:
        return True
    known = _answers.setdefault(region, {}).get(key)
    if known is not None:
        time = known.held.now()  # before what is asked next
        if [sum(map(_version, known.dicts))] == known.version:
            known.held.at(time)
            return True
    try:
        _remember(region, reads, root, key, given)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError, StopIteration):
        _never.add((region, key))  # something is of a class of its own
    return True


def _remember(region: str, reads: _Reads, root: int, key: int, given: tuple[Any, ...]) -> None:
    fit = _fitted_in_c.get(region)
    modules = [_found(one, given, {}, {}) for one in reads.modules]
    one = _seen.get((region, id(modules[0]))) if modules else _worlds.get(region)
    if fit is None or one is None or not one.version or not _copies:  # it is too early
        return
    dicts: dict[int, dict[Any, Any]] = {id(own): own for own in one.dicts}
    passed: dict[int, Any] = {}
    for path in reads.objects:
        _found(path, given, dicts, passed)
    tensors = [_found(path, given, dicts, passed) for path in reads.tensors]
    for names in reads.functions:
        space = _here
        for name in names:
            dicts[id(space)] = space
            space = space[name].__globals__
    assert all(type(own) is dict for own in dicts.values())
    now = sum(map(_version, dicts.values()))
    if len(_tried_at) > 1000:
        _tried_at.clear()
        _never.clear()
    if _tried_at.get((region, key)) != now:  # something changes all the time, perhaps
        _tried_at[region, key] = now
        return
    held = _native.Held((), one.hooks if modules else _HOOKS, *one.always, [*dicts.values()])
    time = held.now()
    version, answers, in_c = [sum(map(_version, dicts.values()))], _answers[region], _in_c.setdefault(region, {})
    if not _asked_again(region, key, given):
        return
    roots = tuple((at, given[at]) for at in sorted(reads.roots))
    alive = [weakref.ref(thing, _forgets(region, key)) for _, thing in roots]
    read = tuple((-1, one) if path.steps else (path.argument, None) for path, one in zip(reads.tensors, tensors))
    if len(answers) > 1000:
        answers.clear()
        in_c.clear()
    answers[key] = _Answer(held, [*dicts.values()], version, alive)
    in_c[key] = _native.Known(held, fit, roots, tuple(passed.values()), read)
    held.at(time)
    _names[f"_{region}_known"] = in_c[key] if root < 0 else _native.Asked(in_c, root)
    if f"_{region}_done" in _names:
        _names[f"_{region}_done"] = _launches(region, in_c, root)
        _names[f"_{region}_given"] = _native.Given(in_c, root) if root >= 0 else _nothing


def _asked_again(region: str, key: int, given: tuple[Any, ...]) -> bool:
    """What the test says once more, with the dictionaries watched; nothing of it is remembered."""
    fits = _names.get(f"_{region}_fits") or _names[f"{region}_fits"]
    _asking.add((region, key))
    try:
        return fits(*given[: fits.__code__.co_argcount])
    finally:
        _asking.discard((region, key))


def _launches(region: str, in_c: dict[int, Any], root: int) -> Callable[..., Any]:
    """What launches a region's kernels on the tensors that are known, where they are one operator's."""
    match _text_of(f"_{region}_on_tensors"):
        case ast.FunctionDef(args=args, body=[ast.Expr(ast.Constant()), ast.Return(ast.Call(ast.Name(name), given))]):
            parameters, now = [one.arg for one in args.args], getattr(_names[name], "now", None)
            if now and all([isinstance(one, ast.Name) and one.id in parameters for one in given]):
                order = tuple(parameters.index(one.id) for one in given)
                return _native.Done(in_c, root, now[1], order)
    return _nothing


def _forgets(region: str, key: int) -> Callable[[object], None]:
    def forget(_: object) -> None:
        _in_c[region].pop(key, None)
        _answers[region].pop(key, None)

    return forget


def _found(
    path: _Path,
    given: tuple[Any, ...],
    dicts: dict[int, dict[Any, Any]],
    passed: dict[int, Any],
    as_attributes: bool = True,
) -> Any:
    """What a path leads to; adds what it leads through: objects, and the dictionaries that hold what they have.
    as_attributes: where an attribute is not what a dictionary holds, there is nothing to know"""
    thing = given[path.argument]
    for step, is_index in path.steps:
        _pass(thing, dicts, passed)
        if is_index:
            assert any([issubclass(type(thing), one) and _ITEMS(type(thing)) == _ITEMS(one) for one in _CONTAINERS])
            held, name = vars(thing)["_modules"], next(key for key, one in thing._modules.items() if one is thing[step])
        else:
            held = next(part for place in _PLACES if step in (part := vars(thing).get(place) or {}))
            name = step
            assert not as_attributes or getattr(thing, name) is held[name]
        dicts[id(held)] = held
        thing = held[name]
    if not isinstance(thing, torch.Tensor):
        _pass(thing, dicts, passed)
    return thing


_PLACES = "_modules", "_parameters", "_buffers"
_CONTAINERS = torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict
_ITEMS = attrgetter("__getitem__", "__getattribute__", "__getattr__")  # of one's own class, as of PyTorch's


def _pass(thing: Any, dicts: dict[int, dict[Any, Any]], passed: dict[int, Any]) -> None:
    classes = _inside_of(*type(thing).__mro__[:-1])
    assert classes
    dicts |= {id(own): own for own in (vars(thing), *classes)}
    passed[id(thing)] = thing


def _what_it_reads(region: str) -> _Reads:
    parameters, *groups, functions = _PATHS[region]
    names = [one.id for one in _items(parameters)]

    def path(node: Any) -> _Path:
        steps: list[tuple[Any, bool]] = []
        while not isinstance(node, ast.Name):
            is_index = isinstance(node, ast.Subscript)
            steps.insert(0, (ast.literal_eval(node.slice) if is_index else node.attr, is_index))
            node = node.value
        return _Path(names.index(node.id), steps)

    objects, modules, tensors = ([path(node) for node in _items(group)] for group in groups)
    roots = {one.argument for one in objects} | {one.argument for one in tensors if one.steps}
    keys = [[key.value for key in ast.walk(node) if isinstance(key, ast.Constant)] for node in _items(functions)]
    return _Reads(objects, modules, tensors, [one[::-1] for one in keys], frozenset(roots))  # the last comes first


def _items(text: str) -> list[Any]:
    return ast.parse(f"[{text}]", mode="eval").body.elts


_names.update({f"_{region}_known": _unknown for region in _PATHS})
for _kept in "done", "given":
    _names.update({f"_{region}_{_kept}": _nothing for region in _PATHS if f"_{region}_on_tensors" in _names})
'''
