"""The part of the shared runtime that writes a launch as straight-line code, once for a device, with all in its place
that does not change from call to call."""

from __future__ import annotations

PREPARED = '''\
# Launches of fixed sizes, prepared: by PyTorch's own launcher of compiled kernels, without calls in Python in between
_launch_at = getattr(getattr(torch._C, "_StaticCudaLauncher", None), "_launch_kernel", None)
_capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: True)
_WANTS = "global_scratch_size", "profile_scratch_size", "launch_cooperative_grid", "tensordesc_meta"
_SCRATCH = 256
"""Multiples of so many bytes are what scratch tensors begin at."""
_KEPT = 2**20
"""Scratch of at most so many bytes is kept from one call to the next."""
_codes: dict[str, CodeType] = {}
_scratch_places: dict[str, dict[str, tuple[str, int]]] = {}
"""Of functions that launch kernels: in which tensor each scratch tensor lies, "" being one that is made for all, and
how many bytes behind where that begins. Those share memory that are not there at the same time."""
_texts: dict[str, ast.FunctionDef] = {}
_as_compiled: dict[str, CodeType] = {}


def _prepared(
    name: str, device: int, ordinary: Callable[..., Any], laid: tuple[Any, ...] = (), odd: bool = False
) -> Callable[..., Any] | None:
    """The function `name`, which has launched its kernels on this device, written anew; None where one of them wants
    what PyTorch's launcher cannot do. ordinary: what it calls wherever anything is other than it was then; laid: as of
    `_operator`, whose results it makes; odd: whether it may be for tensors that are given at any address"""
    native = _make_native()  # of a function that is not written anew, the guards are in C still
    if _launch_at is None or _empty_on_gpu is None:
        return None
    try:
        straight = _Between(name, device, ordinary, laid, odd)
        function = straight.function()
        return (straight.native() or straight.between() if native else None) or function
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError, OSError, SyntaxError):
        return None


def _text_of(name: str) -> ast.FunctionDef:
    """The definition that a function of this module was compiled from."""
    if not _texts:
        tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
        now = {one.co_name: one for one in compile(tree, "", "exec", dont_inherit=True).co_consts if _is_code(one)}
        found = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
        assert all(_alike(now[one], code) for one, code in _codes.items())  # it was not written anew since then
        _texts.update(found)
        _as_compiled.update(now)
    return _texts[name]


def _is_code(value: object) -> bool:
    return isinstance(value, CodeType)


class _Given(NamedTuple):
    """What a launch is given for its parameters: of each the tensor that it lies in, by number, and how many bytes
    behind where that begins; of each tensor how it has to lie, where that is to be asked"""

    places: dict[str, tuple[int, int]]
    lies: tuple[tuple[tuple[int, ...], tuple[int, ...]] | None, ...]


class _Straight:
    """A function that makes tensors, launches kernels on them, and calls PyTorch's, written anew. held: objects that
    its text names; known: where tensors lie, by name; made: those that it makes, with shape and type; lies: shapes and
    strides of those; even: those that have to lie at multiples of 16 bytes. may_be_odd: whether others may be given;
    text: of the function, where it is not as it is written; numbers: names of whole numbers in it."""

    def __init__(
        self,
        name: str,
        device: int,
        ordinary: Callable[..., Any],
        laid: tuple[Any, ...],
        may_be_odd: bool,
        text: ast.FunctionDef | None = None,
        numbers: tuple[str, ...] = (),
    ) -> None:
        self.name, self.device, self.text, self.may_be_odd = name, device, text or _text_of(name), may_be_odd
        self.numbers = numbers
        self.parameters = [one.arg for one in self.text.args.args]
        self.body = sorted(self.text.body, key=lambda part: self._made(part) is None)  # memory first
        self.held: dict[str, Any] = dict(
            _launch=_launch_at, _empty=_empty_on_gpu, _at=_address, _here=_current_device, _stream_of=_current_stream,
            _ordinary=ordinary, _hooks=triton.knobs.runtime, _usual=_usual_run,
        )
        self.known: dict[str, str] = {}
        self.made = {part.targets[0].id: made for part in self.body if (made := self._made(part)) is not None}
        self.lies = {one: (shape, self._row_major(shape)) for one, (shape, _) in self.made.items()}
        self.kernels: list[_Learned] = []
        self.launches: list[tuple[int, tuple[int, int, int], int, int, bool, list[str]]] = []
        self.offsets: dict[str, tuple[str, int]] = {}  # in which tensor, "" being scratch, and where
        self.even: set[str] = set()
        nodes = [node for node in ast.walk(self.text) if isinstance(node, ast.Name)]
        assert not any(name.startswith("_") for name in (*self.parameters, *(node.id for node in nodes)))
        launches = [part.value for part in self.text.body if self._kernel(part) is not None]
        given = {id(node) for launch in launches for node in launch.args}
        read = {node.id for node in nodes if isinstance(node.ctx, ast.Load) and id(node) not in given}
        self.scratch = [name for name in self.made if name not in read]  # what kernels alone read
        self.read = [name for name in self.parameters if any(node.id == name for node in nodes if id(node) in given)]
        loaded = [node.id for node in nodes if isinstance(node.ctx, ast.Load) and id(node) not in given]
        for one, lies in zip(self._returned(), laid):
            if lies is not None:  # nothing but kernels, which know addresses, sees it otherwise
                assert isinstance(one, ast.Name) and one.id in self.made and loaded.count(one.id) == 1
                self.lies[one.id] = lies

    def _returned(self) -> list[ast.expr | None]:
        last = self.text.body[-1]
        returned = last.value if isinstance(last, ast.Return) else None
        return returned.elts if isinstance(returned, ast.Tuple) else [returned]

    def function(self) -> Callable[..., Any]:
        self.known.update({name: f"_at_{name}" for name in self.read})
        lines = [*self._scratch(), *(line for part in self.body for line in self._lines(part))]
        assert self.kernels
        lines = [*self._first(), *(f"    {line}" for line in lines)]
        return _written(self.name, self.parameters, self.held, [line[4:] for line in lines], self.kernels)

    def native(self, given: _Given | None = None) -> Callable[..., Any] | None:
        """The same in C, once the function is written; None where it calls anything of PyTorch's in between. given:
        what it is called with, where that is not its parameters"""
        every = self.parameters
        given = given or _Given({one: (at, 0) for at, one in enumerate(every)}, (None,) * len(every))
        names = self._returned()
        rest = [part for part in self.text.body[:-1] if self._made(part) is None and self._kernel(part) is None]
        counters = {part.targets[0].id: self._counted(part) for part in rest if self._counts(part)}
        rest = [part for part in rest if not isinstance(part, ast.Delete) and not self._counts(part)]
        simple = all(isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in rest)
        outputs = [name for name in self.made if name not in self.scratch]
        if not simple or not all(isinstance(one, ast.Name) and one.id in outputs for one in names):
            return None
        made = [(*self.lies[name], self.made[name][1]) for name in outputs]
        made += counters.values()
        made += [((self.end,), (1,), torch.uint8)] if self.end else []
        of = {**given.places, **{name: (len(given.lies) + at, 0) for at, name in enumerate([*outputs, *counters, ""])}}
        of |= {name: (of[where][0], offset) for name, (where, offset) in self.offsets.items()}
        ways = [0] * len(given.lies)
        for name in self.read:
            at, offset = given.places[name]
            assert name not in self.even or not offset & 15
            ways[at] = 1 if name in self.even or ways[at] == 1 else 2
        again, results = 0 < self.end <= _KEPT, tuple(outputs.index(one.id) for one in names)
        return self._in_c(self.held["_ordinary"], made, again, ways, given.lies, self.launches, of, results)

    def _in_c(
        self, ordinary: Any, made: list[Any], again: bool, ways: list[int], lies: tuple[Any, ...],
        launches: list[Any], of: dict[str, tuple[int, int]], results: tuple[int, ...],
    ) -> Callable[..., Any]:
        """What launches these kernels. ways: how they read what is given; of: which tensor each argument is in, and
        where."""
        kernels = tuple((*how, tuple(of[name] for name in names)) for *how, names in launches)
        hooks = triton.knobs.runtime, "launch_enter_hook", "launch_exit_hook"
        kinds = tuple(one for kind in {type(one.jit) for one in self.kernels} for one in (kind, _usual_run))
        jits = tuple(one.jit for one in self.kernels)
        objects = (
            ordinary, *_hooked(jits), _empty_on_gpu, tuple(made), hooks, kinds, jits, self.device, self.kernels,
        )
        return _native.Launch(objects, self.device, _driver(), again, tuple(ways), lies, kernels, results)

    def _first(self) -> list[str]:
        """Lines that find out whether all is as it was."""
        addresses = [f"    {self.known[name]} = _at({name})" for name in self.read]
        together = " | ".join([self.known[name] for name in self.read if name in self.even] or ["0"])
        watched = [f"_hooks.launch_{way}_hook.calls" for way in ("enter", "exit")]
        kinds = {type(one.jit): self._hold("_kind", type(one.jit)) for one in self.kernels}
        watched += [f"{kind}.run is not _usual" for kind in kinds.values()]
        watched += [f"{self._hold('_jit', one.jit)}.pre_run_hooks" for one in self.kernels]
        other = " or ".join([f"({together}) & 15", f"_here() != {self.device}", *dict.fromkeys(watched)])
        ordinary = f"        return _ordinary({', '.join(self.parameters)})"
        tried = ["    try:", f"        _other = {other}", "    except AttributeError:  # a hook of another kind"]
        last = ["        _other = True", "    if _other:", ordinary, f"    _stream = _stream_of({self.device})"]
        return [*addresses, *tried, *last]

    def _scratch(self) -> list[str]:
        """Lines that make all scratch at once, each tensor where it was planned to be; else one after the other."""
        planned = _scratch_places.get(self.name, {})
        is_planned = planned.keys() == {*self.scratch}
        self.end = 0
        for name in self.scratch:
            shape, dtype = self.made[name]
            where, offset = self.offsets[name] = planned[name] if is_planned else ("", self.end)
            self.known[name] = f"{f'_at({where})' if where else '_scratch_at'} + {offset}"
            end = offset + -(-functools.reduce(mul, shape, dtype.itemsize) // _SCRATCH) * _SCRATCH
            self.end = self.end if where else max(self.end, end)
        if not self.end:
            return []
        made = f"_scratch = _empty(({self.end},), (1,), {self._hold('_type', torch.uint8)})"
        return [made, "_scratch_at = _at(_scratch)"]

    def _lines(self, part: ast.stmt) -> list[str]:
        match part:
            case ast.Expr(ast.Constant()):
                return []
            case ast.Delete(targets):
                named = [one.id for one in targets if one.id not in self.made]
                return [f"del {', '.join(named)}"] if named else []
            case ast.Assign([ast.Name(name)]) if name in self.made:
                if name in self.scratch:
                    return []
                lies = ", ".join(f"({''.join(f'{one}, ' for one in sides)})" for sides in self.lies[name])
                return [f"{name} = _empty({lies}, {self._hold('_type', self.made[name][1])})"]
            case ast.Expr(ast.Call() as call) if self._kernel(part) is not None:
                return self._launch(call)
        assert isinstance(part, (ast.Assign, ast.Expr, ast.Return))
        if self._counts(part):
            return [ast.unparse(part).replace("torch.", "_torch.", 1)]
        return [ast.unparse(part)]

    def _row_major(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        return torch.empty(shape, device="meta").stride()

    def _shape(self, node: ast.expr) -> tuple[Any, ...]:
        return ast.literal_eval(node)

    def _grid(self, node: ast.expr) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Of the launch that was met, and of one that is to be written."""
        grid = ast.literal_eval(node)
        return grid, grid

    def _made(self, part: ast.stmt) -> tuple[tuple[Any, ...], torch.dtype] | None:
        """Shape and type of `name = torch.empty(shape, device=..., dtype=torch....)`."""
        match part:
            case ast.Assign([ast.Name()], ast.Call(ast.Attribute(ast.Name("torch"), "empty"), [shape], keywords)):
                given = {one.arg: one.value for one in keywords}
                assert given.keys() == {"device", "dtype"}
                return self._shape(shape), getattr(torch, given["dtype"].attr)
        return None

    def _counts(self, part: ast.stmt) -> bool:
        """`name = torch.zeros(...)`, which are counters."""
        match part:
            case ast.Assign([ast.Name()], ast.Call(ast.Attribute(ast.Name("torch"), "zeros"))):
                return True
        return False

    def _counted(self, part: ast.Assign) -> Callable[..., torch.Tensor]:
        """What gives these counters, which are other ones on each stream."""
        count, device = *ast.literal_eval(part.value.args[0]), torch.device("cuda", self.device)
        return functools.partial(_counters, count, device)

    def _kernel(self, part: ast.stmt) -> _Kernel | None:
        """Of `kernel[grid](...)`."""
        match part:
            case ast.Expr(ast.Call(ast.Subscript(ast.Name(name)))) if isinstance(_names.get(name), _Kernel):
                return _names[name]
        return None

    def _launch(self, call: ast.Call) -> list[str]:
        grid, across = self._grid(call.func.slice)
        known = _names[call.func.value.id][grid].known.values()
        constants = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        fitting = [one for one in known if one.places[0] == self.device and one.constants == constants]
        learned = min(fitting, key=lambda one: any(one.odd))  # for whole words, where it is known
        self.kernels.append(learned)
        names = [node.id for node in call.args if node.id not in self.numbers]
        numbers = [node.id for node in call.args[len(names) :]]
        odd = {name for name, any_will_do in zip(names, learned.odd) if any_will_do}
        assert self.may_be_odd or not odd & {*self.parameters}  # what is given may lie otherwise the next time
        lines = []
        for name in names:
            if name not in self.known:
                between = name not in self.made  # PyTorch has made it
                self.known[name] = f"_at_{name}" if between else f"_at({name})"
                lines += [f"_at_{name} = _at({name})"] if between else []
            if name not in self.even | odd:
                self.even.add(name)
                if name not in self.made and name not in self.parameters:
                    lines += [f"if _at_{name} & 15:", f"    return _ordinary({', '.join(self.parameters)})"]
        function, warps, shared, early = _static(learned, grid, len(names), len(numbers))
        places = ", ".join([*(self.known[name] for name in names), *numbers])
        across = (*across, 1, 1)[:3]
        self.launches.append((function, across, 32 * warps, shared, early, names))
        sides, kinds = ", ".join(map(str, across)), "O" * len(names) + "i" * len(numbers) + "OO"
        given = f"{function}, {sides}, {warps}, {shared}, {kinds!r}, ({places}, None, None)"
        return [*lines, f"_launch({given}, _stream)"]

    def _hold(self, kind: str, thing: object) -> str:
        known = next((name for name, other in self.held.items() if other is thing), None)
        name = known or f"{kind}_{len(self.held)}"
        self.held[name] = thing
        return name


def _written(
    name: str, parameters: list[str], held: dict[str, Any], lines: list[str], kept: object
) -> Callable[..., Any]:
    """A function of this text, which knows the module's names. held: what else its text names; kept: what is to stay
    as long as it does, as compiled kernels that are loaded"""
    arguments = [*parameters, *(f"{one}={one}" for one in held)]
    space = dict(held)
    exec("\\n".join([f"def {name}({', '.join(arguments)}):", *(f"    {line}" for line in lines)]), space)
    written = space[name]
    function = FunctionType(written.__code__, _names, name, written.__defaults__)
    function.kept = kept
    return function


def _hooked(jits: tuple[Any, ...]) -> tuple[list[dict[Any, Any]], tuple[list[Any], ...]]:
    """The dictionaries that say which lists of hooks there are and how kernels are launched, and those lists; none
    where they are kept in another way."""
    runtime = triton.knobs.runtime
    chains = runtime.launch_enter_hook, runtime.launch_exit_hook
    lists = *(one.calls for one in chains), *(one.pre_run_hooks for one in jits)
    kinds = {kind for one in (runtime, *chains, *jits) for kind in type(one).__mro__ if kind is not object}
    dicts = [*(vars(one) for one in (runtime, *chains, *jits)), *_inside_of(*kinds)]
    told = _version is not None and bool(_inside_of(*kinds)) and all([type(one) is dict for one in dicts])
    return (dicts, lists) if told and all([type(one) is list for one in lists]) else ([], ())


def _static(one: _Learned, grid: tuple[int, ...], tensors: int, numbers: int = 0) -> tuple[int, int, int, bool]:
    """Of a kernel of so many tensors, and whole numbers after them: its function, warps and shared memory, which is all
    that PyTorch's launcher is told of it; and whether it may start before the kernel before it has ended, which only C
    can say: else it starts after that."""
    metadata, signature = one.kernel.metadata, one.kernel.src.signature
    kinds = [kind for kind in signature.values() if kind != "constexpr"]
    assert all(isinstance(kind, str) and kind.startswith("*") for kind in kinds[:tensors])
    assert kinds[tensors:] == ["i32"] * numbers and len(kinds) == tensors + numbers
    assert all(parameter.do_not_specialize for parameter in one.jit.params[tensors : tensors + numbers])
    assert metadata.num_ctas == 1 and not any(getattr(metadata, name, None) for name in _WANTS)
    assert {*(getattr(metadata, "cluster_dims", None) or [1])} == {1}
    assert 0 < functools.reduce(mul, grid) < 2**31  # it launches nothing else, and says nothing
    early = bool(getattr(metadata, "launch_pdl", False))
    return int(one.function), int(metadata.num_warps), int(metadata.shared), early


def _same_bits(one: Any, other: Any) -> bool:
    """Whether two results are the same: what PyTorch's launcher did with a kernel is what Triton's did."""
    pairs = zip(*(given if isinstance(given, tuple) else (given,) for given in (one, other)))
    return all(torch.equal(*(given.reshape(-1).view(torch.uint8) for given in pair)) for pair in pairs)
'''
