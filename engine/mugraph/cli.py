"""The command line's outermost part: exit statuses, and one sentence for whatever goes wrong. The commands are in
commands/app.py.

Imports nothing that may be missing.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType

from mugraph.commands.common import FAILED, INTERRUPTED, say_error
from mugraph.dependencies import sentence


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script. Ends the process with 0, 1, 2 or 130, or as a signal asks; never with a traceback."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(getattr(signal, name), _end)
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def _end(number: int, _: FrameType | None) -> None:
    """Ends processes that were started, and removes temporary files, on the way out."""
    raise SystemExit(128 + number)


def run(arguments: Sequence[str]) -> int:
    """Exit status."""
    try:
        from mugraph.commands.app import invoke
    except ModuleNotFoundError as error:
        if list(arguments[:1]) == ["doctor"]:  # which says what is missing
            from mugraph.commands.doctor import doctor

            return doctor(as_json="--json" in arguments)
        return _unexpected(error)
    except KeyboardInterrupt:
        say_error("interrupted")
        return INTERRUPTED
    try:
        return invoke(arguments)
    except Exception as error:
        return _unexpected(error)


def _unexpected(error: Exception) -> int:
    """A package that is missing is named; anything else is ours, with its details in the log."""
    lacking = sentence(error.name or "") if isinstance(error, ModuleNotFoundError) else None
    if lacking is not None:
        say_error(lacking)
        return FAILED
    from mugraph.log import note

    say_error(f"an internal error ({type(error).__name__}); details are in {note(error, 'mugraph')}")
    return FAILED


if __name__ == "__main__":
    main()
