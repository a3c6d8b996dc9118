"""`mugraph revert FILE`."""

from __future__ import annotations

from mugraph.commands.common import FAILED, OK, Where, say_error
from mugraph.edit.revert import revert_file
from mugraph.edit.source.text import EditError


def revert(place: Where) -> int:
    """Exit status."""
    try:
        done = revert_file(place.path)
    except EditError as error:
        say_error(str(error))
        return FAILED
    print(f"{done.path}: {done.regions} region{'s' if done.regions != 1 else ''} restored")
    for module in done.deleted:
        print(f"deleted {module}")
    for module in done.kept:
        print(f"kept {module}, which another file imports")
    return OK
