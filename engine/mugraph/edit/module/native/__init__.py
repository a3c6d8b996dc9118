"""The part of the shared runtime that is C: guards and launches without Python in between.

Triton compiles a launcher in C for each kernel, so there is a compiler wherever a kernel runs. This is compiled by the
same function, once for a machine, after the first launch of a kernel. Where it cannot be compiled, Python does it all.
"""

from __future__ import annotations

from pathlib import Path

C_TEXT = "\n".join(
    Path(__file__).with_name(f"{name}.c").read_text(encoding="utf-8")
    for name in ("common", "guards", "known", "launches", "module")
)

NATIVE = f'''\
# Guards and launches without Python in between, in C
_C = r"""
{C_TEXT}"""
_DRIVER = "cuLaunchKernel", "cuLaunchKernelEx", "cuStreamIsCapturing", "cuCtxGetDevice"
_SHIM = tuple(f"aoti_torch_get_{{what}}" for what in ("data_ptr", "dtype", "device_index", "dim", "sizes", "strides"))
_tried_native = False


def _make_native() -> bool:
    """Compiles the text above, where what compiles Triton's launchers in C has worked before; whether it is there."""
    global _native, _tried_native
    if _tried_native:
        return _native is not None
    _tried_native = True
    shared = f"_mugraph_native_{{hashlib.sha256(_C.encode()).hexdigest()}}"  # all kernel modules of a process use one
    try:
        made = sys.modules.get(shared)
        if made is None:
            made = importlib.import_module("triton.runtime.build").compile_module_from_src(_C, "mugraph_native")
            _begin(made, _inside_tensors())
            if _version is None or not _tells_changes(made):
                return False
            sys.modules[shared] = made
        _native = made
    except (AttributeError, ImportError, OSError, RuntimeError, TypeError, subprocess.SubprocessError):
        return False
    return True


def _tells_changes(native: ModuleType) -> bool:
    """Whether every kind of change of a dictionary is told, and nothing else."""
    places, changes = _changes()
    held = native.Held((), [], [], [], [], places)
    thing = type("_Sample", (), {{}})()
    written = native.Held((), [], [], [], [], [vars(thing)])
    if held() or written():  # nothing was found to hold yet
        return False
    writes = (lambda number=number: setattr(thing, "a", number) for number in range(64))  # by code that becomes fast
    for one, change in [*((held, change) for change in changes), *((written, write) for write in writes)]:
        one.at(one.now())
        if not one() or not one():
            return False
        change()
        if one():
            return False
    return len(places) == 4


def _begin(native: ModuleType, inside: tuple[int, ...]) -> None:
    asked = (_tracing, _function_modes) if _tells_modes() else _ASKED
    names = vars(forward_ad), vars(torch.compiler)
    native.begin(_address, asked, _dispatch_modes, _grad_enabled, *names, *_PLAIN, inside)


_ASKED = _tracing, _transforms, _dispatch_modes, _function_modes, _any_autocast


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {{}}))


def _tells_modes() -> bool:
    """Whether PyTorch's comparison with tensors, which reads what its functions are replaced by for now, tells
    autocast, modes and transforms."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    tensor = torch.empty((0, 8), device=kind)
    are_alike = _likeness(tensor)
    if are_alike is None:
        return False
    with torch.autocast(kind, dtype=torch.bfloat16):
        told = [not are_alike(tensor)]
    with _Mode():
        told.append(not are_alike(tensor))
    torch._C._functorch._grad_increment_nesting()
    try:
        told.append(not are_alike(tensor))
    finally:
        torch._C._functorch._grad_decrement_nesting()
    return all(told) and are_alike(tensor)


def _inside_tensors() -> tuple[int, ...]:
    """Where a tensor's object keeps the pointer to what it is, and that keeps its dispatch keys, in bytes; and where
    PyTorch's functions in C lie that read tensors. Zeros where it cannot be found out."""
    plain = torch.zeros(2, 3)
    samples = [plain, torch.nn.Parameter(plain), torch._neg_view(plain), torch._efficientzerotensor((2, 3))]
    samples += [plain.half(), plain.to("meta"), torch.zeros(2, requires_grad=True), plain[1:, 1:]]
    size, inside = torch.Tensor.__basicsize__, 26  # words of 8 bytes, which every tensor has
    try:
        objects = [_places_of(one._cdata, id(one), size // 8) for one in samples]
        keys = [_places_of(torch._C._dispatch_keys(one).raw_repr(), one._cdata, inside) for one in samples]
        [handle], [of_keys] = set.intersection(*objects), set.intersection(*keys)
        library = ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / "libtorch_cpu.so"))
        functions = [getattr(library, name) for name in _SHIM]
        for one in (plain, samples[1], samples[-1]):
            sizes, strides = ctypes.POINTER(ctypes.c_int64)(), ctypes.POINTER(ctypes.c_int64)()
            memory, dim = ctypes.c_void_p(), ctypes.c_int64()
            read = zip((functions[0], *functions[3:]), (memory, dim, sizes, strides))
            if any([function(ctypes.c_void_p(id(one) + handle), ctypes.byref(into)) for function, into in read]):
                return (0,) * 8
            rank = range(dim.value)
            told = memory.value, tuple(sizes[at] for at in rank), tuple(strides[at] for at in rank)
            if told != (one.data_ptr(), tuple(one.shape), one.stride()):
                return (0,) * 8
    except (AttributeError, OSError, TypeError, ValueError):
        return (0,) * 8
    return handle, of_keys, *(ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions)


def _places_of(value: int, begin: int, words: int) -> set[int]:
    """Where a word of memory is this, in bytes from the beginning."""
    return {{8 * at for at, word in enumerate((ctypes.c_uint64 * words).from_address(begin)) if word == value}}


@functools.cache
def _driver() -> tuple[int, ...]:
    """Where the driver's functions lie, and PyTorch's that gives a device's current stream."""
    driver = ctypes.CDLL("libcuda.so.1")
    torchs = ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / "libtorch_cuda.so"))
    functions = [getattr(driver, name) for name in _DRIVER] + [torchs.aoti_torch_get_current_cuda_stream]
    return tuple(ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions)
'''
