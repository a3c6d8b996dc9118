"""The part of the shared runtime that is C: guards and launches without Python in between.

Triton compiles a launcher in C for each kernel, so there is a compiler wherever a kernel runs. This is compiled by the
same function, once for a machine, after the first launch of a kernel. Where it cannot be compiled, Python does it all.
"""

from __future__ import annotations

from pathlib import Path

C_TEXT = "\n".join(
    Path(__file__).with_name(f"{name}.c").read_text(encoding="utf-8")
    for name in ("common", "guards", "launches", "module")
)

NATIVE = f'''\
# Guards and launches without Python in between, in C
_C = r"""
{C_TEXT}"""
_DRIVER = "cuLaunchKernel", "cuStreamIsCapturing"
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
            asked = _tracing, _transforms, _dispatch_modes, _function_modes, _any_autocast
            made.begin(_address, asked, _grad_enabled, vars(forward_ad), _PARAMETER)
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


@functools.cache
def _driver() -> tuple[int, ...]:
    """Where the driver's functions lie."""
    library = ctypes.CDLL("libcuda.so.1")
    return tuple(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in _DRIVER)
'''
