"""What a target may be called where a person names one: on the command line, in the settings, in the editor.

"auto" is the device that is here. The extension's package.json has `PATTERN` and `NAMES`, and a test compares them.
"""

from __future__ import annotations

import re

from mugraph.targets import TARGETS

DEVICES = tuple(target.name for target in TARGETS.values() if target.capability and not target.is_architecture)
"""Those that are called by name."""
EXAMPLE = "sm_90"
"""Of an architecture."""
NAMES = f"{', '.join(('auto', 'cpu', *DEVICES))} or an architecture such as {EXAMPLE}"
PATTERN = f"^({'|'.join(('auto', 'cpu', *DEVICES))}|sm_[0-9]+)$"


def is_target(text: str) -> bool:
    return re.fullmatch(PATTERN, text) is not None
