"""The part of the shared runtime that tries kernels at their first use on a device they were not tested on."""

from __future__ import annotations

FIRST_USE = '''\
# Whether the kernels are right on this GPU
_right: dict[tuple[str, int | None], bool] = {}


@_constant
def _right_here(name: str, kind: str, index: int | None) -> bool:
    """Whether a region's kernels agree with its PyTorch code on this GPU, because compilers err: tried once, at their
    first use, unless they were tested on such a GPU with this Triton."""
    if kind != "cuda":  # an interpreter compiles nothing
        return True
    if (name, index) not in _right:
        here = torch.cuda.get_device_name(index), triton.__version__
        _right[name, index] = _CASES[name][2] == here or _agreed(name, torch.device("cuda", index), here)
    return _right[name, index]


def _agreed(name: str, device: torch.device, here: tuple[str, str]) -> bool:
    """Tries a region in a process of its own, as a wrong kernel may break the GPU context it runs in; what agreed once
    is not tried again on this machine."""
    known = hashlib.sha256(repr((Path(__file__).read_bytes(), name, here)).encode()).hexdigest()[:32]
    cache = os.environ.get("MUGRAPH_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "mugraph"
    )
    mark = Path(cache, "agreed", known)
    if mark.exists():
        return True
    command = [sys.executable, "-P", os.path.abspath(__file__), name, str(device)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["it died"]
        trouble = next((line for line in said if "WRONG" in line), said[-1]) if done.returncode else None
    except (OSError, subprocess.SubprocessError) as error:
        trouble = f"it could not be tried: {error}"
    if trouble is None:
        try:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        except OSError:  # then it is tried again in the next process
            pass
        return True
    warnings.warn(f"{name}: its kernel is not used on {here[0]} with triton {here[1]}: {trouble}")
    return False
'''

CHECK = '''\
def _check(name: str, device: torch.device) -> bool:
    """Compares a region's kernels with the code they replace, on random inputs, and says what came of it."""
    errors = _errors(name, device)
    for number, (error, trouble) in enumerate(errors):
        verdict = "right" if trouble is None else f"WRONG: {trouble}"
        print(f"{name}, output {number}: off by {error:.2e} of the largest value, {verdict}")
    return all(trouble is None for _, trouble in errors)


def _main() -> None:
    """What running a kernel module's file does."""
    if len(sys.argv) == 3:
        cases = [case for case in _CASES if case.partition(",")[0] == sys.argv[1]]  # at each of its sizes
        sys.exit(0 if all([_check(case, torch.device(sys.argv[2])) for case in cases]) else 1)
    if not torch.cuda.is_available():
        print("There is no GPU here: the original code runs.")
    elif not _tested_gpu("cuda", torch.cuda.current_device()):
        print("The kernels were not made for this GPU or this Triton: the original code runs.")
    else:
        device = torch.device("cuda", torch.cuda.current_device())
        sys.exit(0 if all([_check(name, device) for name in _CASES]) else 1)
'''
