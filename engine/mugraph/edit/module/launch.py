"""The part of the shared runtime that launches kernels: without Triton's binder, and as operators of PyTorch's."""

from __future__ import annotations

LAUNCH = '''\
# Kernels are launched without Triton's binder, which works out the types and the alignment of all arguments each time:
# that takes longer than many kernels run
_kind_of, _place_of = torch.Tensor.dtype.__get__, torch.Tensor.get_device
_current_device = getattr(torch._C, "_cuda_getDevice", lambda: -1)
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0)
_names = globals()
_empty_on_gpu = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cuda", None)
_TRIES = 3
_row_major: dict[tuple[int, ...], tuple[int, ...]] = {}


class _Torch:
    """What the functions that launch kernels know as `torch`. `torch.empty` reads its arguments longer than a kernel
    takes to launch: on a GPU, which is the current device wherever such a function runs, compiled code's own way."""

    def __getattr__(self, name: str) -> object:
        return getattr(torch, name)

    def empty(self, shape: tuple[int, ...], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        if _empty_on_gpu is None or device.type != "cuda":
            return torch.empty(shape, dtype=dtype, device=device)
        strides = _row_major.get(shape)
        if strides is None:
            if len(_row_major) > 1000:  # a shape for each size
                _row_major.clear()
            strides = _row_major[shape] = torch.empty(shape, device="meta").stride()
        return _empty_on_gpu(shape, strides, dtype)

    def zeros(self, shape: tuple[int, ...], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Counters of the blocks of a kernel, which leaves them at 0, as it finds them."""
        return _counters(shape[0], device) if dtype is torch.int32 else torch.zeros(shape, dtype=dtype, device=device)


_COUNTERS, _APART, _OF_THREAD = 1 << 16, 32, 2
"""Numbers that are made at once; what is handed out begins at multiples of so many; the name of a stream that is
another one in each thread."""
_counting: dict[tuple[int, int], torch.Tensor] = {}
"""Of each stream of a device: it runs one kernel after the other, and each leaves 0 to the next one."""
_for_graphs: dict[int, torch.Tensor] = {}
"""What is left of each device's, which no graph has."""
_given_to_graphs: list[torch.Tensor] = []
"""All that was made for graphs, which may be replayed as long as this process runs."""
_one_at_a_time = threading.Lock()
_of_operator = threading.local()
"""Whether this thread is in an operator of PyTorch's: then memory is of whoever compiled what calls it. The graphs
that torch.compile makes have a pool of it, in which nothing may stay that they do not know of."""


def _zeroed(count: int, device: torch.device) -> torch.Tensor:
    return torch.zeros((count,), dtype=torch.int32, device=device)


def _counters(count: int, device: torch.device) -> torch.Tensor:
    """Zeros, that whoever is given them leaves as zeros in the order of the current stream. To fill them at each call
    would be one more launch. A kernel that is captured in a graph has some of its own, for good: the graph may be
    replayed on any stream, while other graphs and other calls run. (A graph that was made ready to run waits for its
    own last replay; two that were made of one capture share all memory of it, and may not run side by side.)"""
    at = device.index
    if device.type != "cuda" or at is None or at != _current_device() or count > _COUNTERS or vars(_of_operator):
        return _zeroed(count, device)
    stream, capturing, room = _current_stream(at), _capturing(), -(-count // _APART) * _APART
    if not capturing and (known := _counting.get((at, stream))) is not None and known.numel() >= count:
        return known
    with _one_at_a_time:
        left = _for_graphs.get(at)
        if capturing:
            if left is None or left.numel() < room:
                return _zeroed(count, device)  # the graph fills them at each replay
            _for_graphs[at] = left[room:]
            return left[:count]
        if left is None or left.numel() < room:
            _for_graphs[at] = left = _zeroed(_COUNTERS, device)
            _given_to_graphs.append(left)
            torch.cuda.current_stream(at).synchronize()  # a replay on another stream finds them filled
        if stream == _OF_THREAD:
            return _zeroed(count, device)
        found = _counting[at, stream] = _zeroed(max(count, 1024), device)
        return found


_torch = _Torch()
vars(_torch).update({name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)})


class _Learned(NamedTuple):
    """What Triton compiled for tensors of these types, all on one device and in whole words of 16 bytes, and for these
    constants; how to launch it. passed: parameters that its launcher passes over, as they are compiled in; odd: which
    tensors it was compiled for at any address, as a view may have it (`x[:, 1::2]`); empty where that is none"""

    jit: Any
    kernel: Any
    run: Callable[..., object]
    function: object
    metadata: object
    kinds: list[torch.dtype]
    places: list[int]
    constants: dict[str, object]
    passed: list[object]
    odd: tuple[bool, ...] = ()


class _Kernel(dict[Any, Callable[..., object]]):
    """Stands for a kernel of Triton's in the functions that launch it, by `kernel[grid](...)`. Of each grid: what
    launches it there."""

    def __init__(self, jit: Any) -> None:
        super().__init__()
        self.jit = jit

    def __missing__(self, grid: tuple[int, ...]) -> Callable[..., object]:
        if len(self) > 1000:  # a grid for each size
            self.clear()
        self[grid] = _launcher(self.jit, grid)
        return self[grid]


def _launcher(jit: Any, grid: tuple[int, ...]) -> Callable[..., object]:
    """What launches a kernel over a grid: Triton the first time, and wherever anything is other than it was then, or
    somebody watches."""
    known: dict[Any, _Learned] = {}
    numbers, ordinary, across = 0, jit[grid], (*grid, 1, 1)[:3]

    def launch(*given: Any, **constants: Any) -> object:
        nonlocal numbers
        tensors, sizes = (given[:-numbers], given[-numbers:]) if numbers else (given, ())
        device, one = _current_device(), None
        if known and _unwatched(jit):
            addresses = [*map(_address, tensors)]
            odd = _odd(addresses) if functools.reduce(or_, addresses) & 15 else ()
            one = known.get(_known_as(device, sizes, odd, constants))
            if (
                one is not None
                and one.constants == constants
                and [*map(_kind_of, tensors)] == one.kinds
                and [*map(_place_of, tensors)] == one.places
            ):
                stream = _current_stream(device)
                one.run(*across, stream, one.function, one.metadata, None, None, None, *addresses, *sizes, *one.passed)
                return one.kernel
        kernel = ordinary(*given, **constants)
        if one is None:
            numbers = sum(type(value) is int for value in given)
            found = _learned(jit, kernel, device, given, constants, numbers)
            if found is not None:
                known[_known_as(device, given[len(given) - numbers :], found.odd, constants)] = found
        return kernel

    launch.known = known
    return launch


def _known_as(device: int, sizes: tuple[int, ...], odd: tuple[bool, ...], constants: dict[str, object]) -> object:
    """What Triton compiles apart. Where sizes vary, one grid may be that of several schedules."""
    key = (device, *map(_size_kind, sizes), *constants.values()) if sizes else device
    return (key, odd) if odd else key


def _odd(addresses: list[int]) -> tuple[bool, ...]:
    """Which are no multiples of 16; empty where all are."""
    odd = tuple([at & 15 != 0 for at in addresses])
    return odd if any(odd) else ()


def _unwatched(jit: Any) -> bool:
    """Whether nobody is to be told of a launch (Triton's hooks; a profiler in the place of its own function)."""
    hooks = triton.knobs.runtime
    try:
        if hooks.launch_enter_hook.calls or hooks.launch_exit_hook.calls:
            return False
    except AttributeError:  # a hook of another kind
        return False
    return type(jit).run is _usual_run and not jit.pre_run_hooks


def _size_kind(size: int) -> tuple[bool, ...]:
    """What Triton compiles apart: 1, multiples of 16, and what fits in so many bits."""
    return size == 1, not size & 15, -(2**31) <= size < 2**31, size < 2**63


def _learned(
    jit: Any, kernel: Any, device: int, given: tuple[Any, ...], constants: dict[str, Any], numbers: int
) -> _Learned | None:
    """What Triton has just launched; None where it is to be launched by Triton again."""
    tensors, places = given[: len(given) - numbers], [parameter.is_constexpr for parameter in jit.params]
    tensors_first = all(type(one) in _PLAIN for one in tensors)
    constants_last = places == [False] * len(given) + [True] * (len(places) - len(given))
    if not tensors_first or not constants_last or jit.used_global_vals or not _unwatched(jit):
        return None
    try:
        passed = [constants[name] for name in jit.arg_names[len(given) :]]
        run, function, metadata = kernel.run, kernel.function, kernel.packed_metadata
    except (AttributeError, KeyError):
        return None
    kinds, at = [*map(_kind_of, tensors)], [*map(_place_of, tensors)]
    if set(at) != {device} or function is None:
        return None
    odd = _odd([*map(_address, tensors)])
    return _Learned(jit, kernel, run, function, metadata, kinds, at, dict(constants), passed, odd)


def _usual(jit: Any) -> object:
    """Triton's own function that launches; None where another is in its place."""
    run = getattr(jit, "run", None)
    file = getattr(sys.modules.get(jit.__module__), "__file__", None)
    return run if isinstance(run, FunctionType) and run.__code__.co_filename == file else None


_usual_run = _usual(triton.JITFunction) if _TRITON else None


def _operator(
    name: str,
    launch: str,
    made: Callable[..., Any],
    results: int = 1,
    laid: tuple[Any, ...] = (),
    scratch: dict[str, tuple[str, int]] | None = None,
    varies: bool = False,
) -> Callable[..., Any]:
    """What regions call: the function `launch` at once, prepared from its second call on, or, where something traces,
    the operator `name` of PyTorch's that does the same. made: its results without their numbers; laid: of each the
    shape and strides that the program has it with, where they are others than it is stored with; scratch: where tensors
    lie that kernels hand to one another, where some share memory; varies: whether a size of them does"""
    _scratch_places[launch] = scratch or {}
    code = _codes[launch] = _names[launch].__code__
    for used in code.co_names:
        if _TRITON and isinstance(_names.get(used), triton.JITFunction):
            _names[used] = _Kernel(_names[used])
    named = tuple("_torch" if name == "torch" else name for name in code.co_names)
    _names[launch] = FunctionType(code.replace(co_names=named), _names, launch)
    prepared: dict[int, Callable[..., Any]] = {}
    now: list[Callable[..., Any]] = []  # in C, for the device that was the first; and its launch
    tried: list[int] = []

    def launched(*tensors: torch.Tensor) -> Any:
        made = _names[launch](*tensors)
        if not laid:
            return made
        return _seen_so(made, laid[0]) if results == 1 else tuple([*map(_seen_so, made, laid)])

    def on_its_device(*tensors: torch.Tensor) -> Any:
        with torch.cuda.device_of(tensors[0]):
            return launched(*tensors)

    def as_operator(*tensors: torch.Tensor) -> Any:
        _of_operator.name = name
        try:
            return on_its_device(*tensors)
        finally:
            vars(_of_operator).clear()

    def ordinary(*tensors: torch.Tensor) -> Any:
        at = _place_of(tensors[0])
        return launched(*tensors) if at < 0 or at == _current_device() else on_its_device(*tensors)

    def first(*tensors: torch.Tensor) -> Any:
        result, at = ordinary(*tensors), _place_of(tensors[0])
        if 0 <= at == _current_device() and tried.count(at) < _TRIES and not _capturing():
            tried.append(at)
            try:
                last = tried.count(at) == _TRIES  # what is given at odd addresses, as a view is, may lie so always
                ready = _prepared(launch, at, ordinary, laid, last)
                if ready is not None and _same_bits(result, ready(*tensors)):
                    prepared[at] = ready
                    if not now and _native is not None and isinstance(ready, _native.Launch):
                        now.extend([_native.Now(ready, run.slowly), ready])
            except Exception:  # as no memory for a second result; the ordinary way has just worked
                pass
        return result

    ways: dict[tuple[int, str], int] = {}
    parameters = made.__code__.co_varnames[: made.__code__.co_argcount]
    taken = ", ".join(f"Tensor {name}" for name in parameters)
    given = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
    operator = torch.library.custom_op(
        name, as_operator, mutates_args=(), schema=f"({taken}) -> {given}", tags=(torch.Tag.needs_exact_strides,)
    )
    operator.register_fake(made)
    met_first = _first_of_its_size(launch, ordinary, laid, prepared, ways) if varies else first
    run = _entry(len(parameters), operator, prepared, met_first, now)
    run.operator, run.prepared, run.tried, run.now, run.ways = operator, prepared, tried, now, ways
    run.launch, run.laid = launch, laid
    return run


def _seen_so(tensor: torch.Tensor, lies: tuple[tuple[int, ...], tuple[int, ...]] | None) -> torch.Tensor:
    """A tensor of its own, as PyTorch's is: autograd has rules for writes to views."""
    return tensor if lies is None else tensor.as_strided(*lies).data


def _entry(count: int, *objects: object) -> Callable[..., Any]:
    """What regions call, of so many parameters: to pass them on as a tuple takes longer. They have names of their own:
    a tensor may be called `first`."""
    parameters = ", ".join([f"tensor_{number}" for number in range(count)])
    text = f"""
def made(operator, prepared, first, now):
    def run({parameters}):
        if not _dynamo() and now:
            return now[0]({parameters})
        return slowly({parameters})
    def slowly({parameters}):
        if _compiling() or _dispatch_modes():
            return operator({parameters})
        ready = prepared.get(_place_of(tensor_0))
        return first({parameters}) if ready is None else ready({parameters})
    run.slowly = slowly
    return run
"""
    space: dict[str, Any] = {}
    exec(text, _names, space)
    return space["made"](*objects)
'''
