"""The runtime that kernel modules share: one file beside them, the same to the byte for one version of mugraph.

A kernel module reads it into its own names, so that each has its own state, and several versions lie side by side.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from mugraph.edit.module.analysed import ANALYSED
from mugraph.edit.module.between import BETWEEN
from mugraph.edit.module.clock import CLOCK
from mugraph.edit.module.conditions import CONDITIONS
from mugraph.edit.module.edits import EDITS
from mugraph.edit.module.first_use import CHECK, FIRST_USE
from mugraph.edit.module.guards import GUARDS
from mugraph.edit.module.judge import JUDGE
from mugraph.edit.module.known import KNOWN
from mugraph.edit.module.launch import LAUNCH
from mugraph.edit.module.masks import MASKS
from mugraph.edit.module.meeting import MEETING
from mugraph.edit.module.native import NATIVE
from mugraph.edit.module.numbers import NUMBERS
from mugraph.edit.module.parts import IMPORTS, MACHINERY
from mugraph.edit.module.prepared import PREPARED
from mugraph.edit.module.refusals import REFUSALS
from mugraph.edit.module.seal import SEAL
from mugraph.edit.module.sized import SIZED
from mugraph.edit.module.sizes import KNOWN_TO_FIT
from mugraph.edit.module.steps import STEPS
from mugraph.edit.module.writers import WRITERS
from mugraph.ir.content import digest

_HEADER = '''\
"""What kernel modules need beside their kernels: `*_mugraph.py` in this folder read this file into themselves.

It says whether a kernel may run here, and compares kernels with PyTorch. Where it is missing, the original code runs.
`mugraph revert` takes it out with the last of them. No other text than this one is used.
"""
# fmt: off
# isort: skip_file

if "_SOURCE" not in globals():  # imported by itself, as by code that imports all files of a folder: it has no kernels
    _SOURCE, _CAPABILITY, _BUILTINS, _OWN = "", (0, 0), frozenset(), []
    _RAN = _REGIONS = _CALLED_FUNCTIONS = _OUTSIDE_NAMES = _PATHS = _TF32 = {}
'''


def _parts() -> str:
    places = IMPORTS, MACHINERY, KNOWN_TO_FIT, LAUNCH, WRITERS, PREPARED, BETWEEN, SIZED, STEPS, NUMBERS
    code = SEAL, GUARDS, ANALYSED, CONDITIONS, MEETING, CLOCK, NATIVE, KNOWN, REFUSALS
    parts = *places, *code, EDITS, FIRST_USE, JUDGE, MASKS, CHECK
    return f"{_HEADER}\n" + "\n\n".join(part.rstrip() + "\n" for part in parts)


RUNTIME = _parts()
"""The file's text."""
RUNTIME_NAME = f"mugraph_runtime_{digest(RUNTIME, length=10)}"
"""Its name, without \".py\"."""
_IN_MODULE = re.compile(r'\.hexdigest\(\) != "([0-9a-f]{64})":')
_SHA256 = sha256(RUNTIME.encode()).hexdigest()
RUNTIME_FILE = re.compile(r"mugraph_runtime_[0-9a-f]{10}")
"""The names of all versions."""


def runtime_trouble(module: Path, text: str) -> str | None:
    """What is wrong with the file that a kernel module reads into itself, in one sentence, as it will find when it is
    imported. text: of the module. None where nothing is, or where the module has everything in itself."""
    named, wanted = RUNTIME_FILE.search(text), _IN_MODULE.search(text)
    if named is None or wanted is None:
        return None
    try:
        found = module.with_name(f"{named[0]}.py").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"{named[0]}.py, which {module.name} needs, cannot be read ({error})"
    if sha256(found.encode()).hexdigest() == wanted[1]:
        return None
    return f"{named[0]}.py was edited since it was written: it is not what the kernels were tested with"


LOADER = f'''\
# What all kernel modules of one version of mugraph need stands once, in a file beside this one
_path = str(Path(__file__).with_name("{RUNTIME_NAME}.py"))
_trouble = f"{{_path}} is missing or damaged"
try:
    if sha256(Path(_path).read_text(encoding="utf-8").encode()).hexdigest() != "{_SHA256}":
        _trouble = f"{{_path}} was edited since it was written: it is not what the kernels were tested with"
        raise ImportError(_trouble)
    exec(SourceFileLoader(__name__, _path).get_code(__name__), globals())
    if not _as_written(__file__):
        _trouble = f"{{__file__}} was edited since it was written: its kernels are not those that were tested"
        raise ImportError(_trouble)
except Exception as error:  # this file was copied alone, or edited: the original code runs
    warnings.warn(f"{{__name__}}: the kernels are not used: {{error}}")

    def _same_code(*_: object) -> bool:
        return False

    def _dynamo() -> bool:
        return True  # nothing else is asked than what is above

    def _operator(*_: object, **__: object) -> None:
        return None

    def _main() -> None:
        raise SystemExit(f"{{_trouble}}. The original code runs.")
'''
"""How a kernel module reads it."""
OPERATORS = """\
# The kernels as operators of PyTorch's, which torch.compile and torch.export see: how each is launched, what it makes
"""
END = """\
if __name__ == "__main__":
    _main()
"""
