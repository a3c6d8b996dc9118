"""The part of the shared runtime that runs a region of several steps without the views that only kernels read."""

from __future__ import annotations

STEPS = '''\
# A region of several steps, written as straight-line code once its launches are prepared: what kernels read of a tensor
# is then told by the tensor and an offset, and is not made; what PyTorch computes in between is called as it was
_VIEWS = frozenset(
    "view reshape transpose permute unsqueeze squeeze flatten unflatten select narrow expand swapaxes movedim "
    "chunk split unbind".split()
)
_TURNED = "mT", "T"


def _run_of(region: str) -> Callable[..., Any]:
    """What runs the region's steps, from its first call of which all launches are prepared."""
    name, run_name = f"_{region}_on_tensors", f"_{region}_run"
    as_written = _names[name]

    def run(*tensors: torch.Tensor) -> Any:
        at = _place_of(tensors[0])
        if _compiling() or _dispatch_modes() or not 0 <= at == _current_device() or _capturing() or not _native:
            return as_written(*tensors)
        operators = [one for name in as_written.__code__.co_names if hasattr(one := _names.get(name), "prepared")]
        if any([at not in one.prepared and one.tried.count(at) < _TRIES for one in operators]):
            return as_written(*tensors)
        _names[run_name] = as_written  # whatever comes of it, it is tried once
        try:
            steps = _Steps(name, at)
        except (AssertionError, AttributeError, KeyError, OSError, SyntaxError, TypeError, ValueError):
            return as_written(*tensors)
        result, function = steps.result(tensors)
        _names[run_name] = function or as_written
        return result

    return run


class _Steps:
    """The function `name`, which is run once on tensors of this device and written anew meanwhile. once: names that are
    bound once; read: those that others than launches and views read; dropped: lines that make views which launches
    alone read; parts: those views, and which tensor each is a part of; views: the lines that would make them; space:
    what names stand for while it is run; at: of these what is no such view; gone: deleted so far; lies: of what
    PyTorch computes, shape and strides"""

    def __init__(self, name: str, device: int) -> None:
        self.name, self.device, self.text = name, device, _text_of(name)
        self.parameters = [one.arg for one in self.text.args.args]
        said, *self.body = self.text.body
        assert isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant)
        assert all([isinstance(one, (ast.Assign, ast.Delete, ast.Expr)) for one in self.body[:-1]])
        assert _alike(_as_compiled[name], _names[name].__code__)  # it was not written anew since then
        self.held: dict[str, Any] = {"_as_written": _names[name], "_place": _place_of}
        self.held.update(_asks=_compiling, _modes=_dispatch_modes)
        nodes = [node for one in self.body for node in ast.walk(one) if isinstance(node, ast.Name)]
        bound = [*self.parameters, *(node.id for node in nodes if isinstance(node.ctx, ast.Store))]
        assert not any(one.startswith("_") for one in bound) and isinstance(self.body[-1], ast.Return)
        self.once = {one for one in bound if bound.count(one) == 1}
        self.read: set[str] = set()
        self.parts: dict[str, str] = {}
        self.views: dict[str, list[ast.Assign]] = {}
        self.gone: set[str] = set()
        self.lies: dict[str, Any] = {}
        self.space: dict[str, Any] = {}
        self.at: dict[str, torch.Tensor] = {}
        dropped = [id(one) for one in reversed(self.body) if self._is_dropped(one)]
        apart = [(_taken_apart(one), True) if id(one) in dropped else ([one], False) for one in self.body]
        self.body = [line for lines, _ in apart for line in lines]
        self.dropped = {id(lines[-1]) for lines, is_view in apart if is_view}

    def _is_dropped(self, part: ast.stmt) -> bool:
        """Whether only launches read what this line makes, as parts of what is there. The lines behind it were asked
        before: notes what this one reads."""
        if (call := self._launch(part)) is not None:
            by_numbers = isinstance(self._prepared(call), _native.Launch)
            self.read |= {name for one in call.args if not (by_numbers and _given_name(one)) for name in _read_of(one)}
            return False
        base, _ = _viewed(part)
        targets = {node.id for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        if base is None or not targets <= self.once or targets & self.read:
            self.read |= {*_read_of(part)}
            return False
        if not isinstance(base, ast.Name):
            self.read |= {*_read_of(base)}
            return len(targets) == 1
        if base.id not in self.once:
            self.read.add(base.id)
        return base.id in self.once

    def _launch(self, part: ast.stmt) -> ast.Call | None:
        match part:
            case ast.Assign(value=ast.Call(ast.Name(name)) as call) | ast.Return(ast.Call(ast.Name(name)) as call):
                return call if hasattr(_names.get(name), "prepared") and not call.keywords else None
        return None

    def _prepared(self, call: ast.Call) -> Callable[..., Any] | None:
        return _names[call.func.id].prepared.get(self.device)

    def result(self, tensors: tuple[torch.Tensor, ...]) -> tuple[Any, Callable[..., Any] | None]:
        """What it computes of these, line for line, as written. Each launch is written anew, and done once more to be
        compared; and the function that is written anew, where all were the same."""
        self.space.update(zip(self.parameters, tensors))
        self.at.update(self.space)
        lines, returned, trouble = list[str](), None, False
        for part in self.body:
            returned = self._do(part)
            try:
                lines += [] if trouble else self._line(part, returned)
            except Exception:  # as no memory for a second result; it is done as written
                trouble = True
        return returned, None if trouble else self._function(lines)

    def _do(self, part: ast.stmt) -> Any:
        if isinstance(part, ast.Delete):
            return None
        if isinstance(part, ast.Return):
            return eval(compile(ast.Expression(part.value), self.name, "eval"), _names, self.space)
        exec(compile(ast.Module([part], []), self.name, "exec"), _names, self.space)
        return None

    def _note(self, part: ast.stmt) -> None:
        """How what PyTorch has computed lies."""
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in self.once:
                tensor = self.at[node.id] = self.space[node.id]
                if type(tensor) in _PLAIN:
                    self.lies[node.id] = tuple(tensor.shape), tensor.stride()

    def _deleted(self, part: ast.Delete) -> list[str]:
        """A tensor is deleted when all views are that are told by it and an offset."""
        names = [one.id for one in part.targets]
        self.gone |= {*names}
        whole = dict.fromkeys(self.parts.get(name, name) for name in names)
        held = {base for name, base in self.parts.items() if name not in self.gone}
        last = [one for one in whole if one in self.gone - held]
        return [f"del {', '.join(last)}"] if last else []

    def _line(self, part: ast.stmt, returned: Any) -> list[str]:
        """What stands for a line, which has just been run."""
        if isinstance(part, ast.Delete):
            return self._deleted(part)
        if id(part) in self.dropped:
            base = _viewed(part)[0].id
            for node in ast.walk(part.targets[0]):
                if isinstance(node, ast.Name):
                    self.parts[node.id] = self.parts.get(base, base)
                    self.views[node.id] = [*self.views.get(base, []), part]
            return []
        call = self._launch(part)
        if call is None or (ready := self._prepared(call)) is None:
            self._note(part)
            return ast.unparse(part).splitlines()
        found = returned
        if isinstance(part, ast.Assign):
            found = eval(compile(ast.Expression(_loaded(part.targets[0])), "", "eval"), _names, self.space)
            for node in ast.walk(part.targets[0]):
                if isinstance(node, ast.Name):
                    self.at[node.id] = self.space[node.id]
        given = [ast.unparse(one) for one in call.args]
        if isinstance(ready, _native.Launch):
            ready, given = self._of_parts(call, found)
        name = f"_step_{len(self.held)}"
        self.held[name] = ready
        called = f"{name}({', '.join(given)})"
        return [f"return {called}" if isinstance(part, ast.Return) else f"{ast.unparse(part.targets[0])} = {called}"]

    def _of_parts(self, call: ast.Call, found: Any) -> tuple[Callable[..., Any], list[str]]:
        """The launch of a call, given tensors that there are, and which these are. found: what it has just made"""
        operator = _names[call.func.id]
        names = [_given_name(one) for one in call.args]
        assert all([name in self.once for name in names])
        whole = [self.parts.get(name, name) for name in names]
        given, offsets = [*dict.fromkeys(whole)], list[int]()
        for argument, name, one in zip(call.args, names, whole):
            view, base = self.space[name] if name in self.parts else self.at[name], self.at[one]
            assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
            assert isinstance(argument, ast.Name) or ast.literal_eval(argument.args[1]) == view.stride()
            offsets.append(view.data_ptr() - base.data_ptr())
            assert view.dtype == base.dtype and 0 <= offsets[-1] < base.untyped_storage().nbytes()
        lies = tuple([self.lies.get(one) for one in given])
        ready = self._prepared(call)
        if given == names and not any(lies) and not any(offsets):
            return ready, given
        views = {id(one): one for name in names for one in self.views.get(name, [])}
        as_written = [*map(ast.unparse, views.values()), f"return {ast.unparse(call)}"]
        otherwise = _written(f"{self.name}_step", given, {}, as_written, None)
        straight = _Straight(operator.launch, self.device, _refuse, operator.laid, True)
        straight.function()
        places = {one: (given.index(base), offset) for one, base, offset in zip(straight.parameters, whole, offsets)}
        made = straight.native(_Given(places, lies))
        assert _same_bits(found, made(*[self.at[one] for one in given]))  # which nothing else has done
        straight.held["_ordinary"] = otherwise
        return straight.native(_Given(places, lies)), given

    def _function(self, lines: list[str]) -> Callable[..., Any]:
        given = ", ".join(self.parameters)
        other = f"if _place({self.parameters[0]}) != {self.device} or _asks() or _modes():"
        lines = [other, f"    return _as_written({given})", *lines]
        return _written(self.name, self.parameters, self.held, lines, None)


def _refuse(*_: object) -> None:
    raise AssertionError


def _given_name(argument: ast.expr) -> str | None:
    """The tensor that is given, whether or not it has to lie in some way."""
    match argument:
        case ast.Name(name) | ast.Call(ast.Name("_laid_out"), [ast.Name(name), ast.Tuple()]):
            return name
    return None


def _read_of(part: ast.AST) -> list[str]:
    return [node.id for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]


def _viewed(part: ast.stmt) -> tuple[ast.expr | None, list[ast.expr]]:
    """What a line makes views of, and the expressions around it, the outermost first; None where it makes others."""
    found: list[ast.expr] = []
    node = part.value if isinstance(part, ast.Assign) and len(part.targets) == 1 else None
    while node is not None:
        match node:
            case ast.Call(ast.Attribute(inner, name), given, named) if name in _VIEWS:
                fixed = all(map(_is_fixed, [*given, *(one.value for one in named)]))
            case ast.Attribute(inner, name) if name in _TURNED:
                fixed = True
            case ast.Subscript(inner, places):
                fixed = _is_fixed(places)
            case _:
                break
        if not fixed:
            return None, []
        found.append(node)
        node = inner
    return (node, found) if found else (None, [])


def _is_fixed(node: ast.expr) -> bool:
    """Whether it is made of numbers alone: it is the same at each call, and no tensor is read by it."""
    allowed = ast.Constant, ast.Tuple, ast.List, ast.Slice, ast.UnaryOp, ast.USub, ast.Load
    return all(isinstance(one, allowed) for one in ast.walk(node)) and not any(
        isinstance(one, ast.List) for one in ast.walk(node)
    )


def _taken_apart(part: ast.Assign) -> list[ast.Assign]:
    """A line that makes a view, apart from the one that computes what it is of, where it does."""
    base, around = _viewed(part)
    if isinstance(base, ast.Name):
        return [part]
    value = ast.parse(ast.unparse(part.value), mode="eval").body
    node, holder = value, None
    for _ in around:
        holder, node = node, (node.func.value if isinstance(node, ast.Call) else node.value)
    inside = holder.func if isinstance(holder, ast.Call) else holder
    inside.value = ast.Name(part.targets[0].id, ast.Load())
    return [ast.fix_missing_locations(ast.Assign(part.targets, one, lineno=1)) for one in (base, value)]


def _loaded(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


_regions = [name[1 : -len("_on_tensors")] for name in _names if name.startswith("_") and name.endswith("_on_tensors")]
_names.update({f"_{region}_run": _run_of(region) for region in _regions})
'''
