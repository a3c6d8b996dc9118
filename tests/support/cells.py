"""Cells of a notebook, run as a kernel runs them: in `__main__`, each with its source in `linecache` and in no file.

    python -m tests.support.cells CELLS.json

prints what the cells print.
"""

from __future__ import annotations


def main() -> None:
    import json
    import linecache
    import sys
    from pathlib import Path

    cells = json.loads(Path(sys.argv[1]).read_text())
    space = vars(sys.modules["__main__"])
    for name in [name for name in space if not name.startswith("__")] + ["__file__", "__spec__"]:
        space.pop(name, None)
    for number, text in enumerate(cells):
        name = f"/tmp/ipykernel_1/{number}.py"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec", dont_inherit=True), space)


if __name__ == "__main__":
    main()
