"""Mutations of thread graphs and of library kernels: what a document says a second time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.trust.memory import Json
from tests.trust.mutations.edits import Edit, generated, mutation

_OTHER = {"add": "mul", "mul": "add", "div": "mul", "max": "add", "sqrt": "exp", "exp": "sqrt", "sum": "amax",
          "amax": "sum", "dot": "mul", "unary": "exp"}  # fmt: skip


def _of(kernel: int, at: int, change: Callable[[Json], None]) -> Callable[[Json], None]:
    def apply(graph: Json) -> None:
        change(graph["kernels"][kernel]["threads"][at])

    return apply


@mutation
def thread_operators(graph: Json, _: random.Random) -> Iterator[Edit]:
    for number, kernel in generated(graph):
        for at, thread in enumerate(kernel["threads"]):
            for position, op in enumerate(thread["ops"]):

                def gone(thread: Json, position: int = position) -> None:
                    del thread["ops"][position]

                def kind(thread: Json, position: int = position) -> None:
                    op = thread["ops"][position]
                    op["kind"] = _OTHER.get(op["kind"], op["kind"])

                def turned(thread: Json, position: int = position) -> None:
                    thread["ops"][position]["inputs"].reverse()

                def doubled(thread: Json, position: int = position) -> None:
                    thread["ops"].append(thread["ops"][position])

                def number_changed(thread: Json, position: int = position) -> None:
                    thread["ops"][position]["value"] = 2.0 * thread["ops"][position]["value"] + 1.0

                def renamed(thread: Json, position: int = position) -> None:
                    thread["ops"][position]["name"] += "_other"

                yield f"{op['name']} gone from {thread['name']}", _of(number, at, gone)
                yield f"{op['name']} renamed in {thread['name']}", _of(number, at, renamed)
                yield f"{op['name']} twice in {thread['name']}", _of(number, at, doubled)
                if op["kind"] in _OTHER:
                    yield f"{op['name']} of another kind in {thread['name']}", _of(number, at, kind)
                if len(op["inputs"]) > 1:
                    yield f"operands of {op['name']} swapped in {thread['name']}", _of(number, at, turned)
                if op["kind"] == "const":
                    yield f"{op['name']} another number in {thread['name']}", _of(number, at, number_changed)


@mutation
def thread_borders(graph: Json, _: random.Random) -> Iterator[Edit]:
    for number, kernel in generated(graph):
        for at, thread in enumerate(kernel["threads"]):

            def named(thread: Json) -> None:
                thread["name"] += "_other"

            def turned(thread: Json) -> None:
                thread["ops"].reverse()

            def more(thread: Json) -> None:
                thread["inputs"].append("unknown")

            def empty(thread: Json) -> None:
                thread["ops"] = []

            def unread(thread: Json) -> None:
                thread["inputs"] = []

            yield f"{thread['name']} called otherwise", _of(number, at, named)
            yield f"{thread['name']} in another order", _of(number, at, turned)
            yield f"{thread['name']} reads more", _of(number, at, more)
            yield f"{thread['name']} is empty", _of(number, at, empty)
            yield f"{thread['name']} reads nothing", _of(number, at, unread)
            for position, name in enumerate(thread["inputs"]):

                def less(thread: Json, position: int = position) -> None:
                    del thread["inputs"][position]

                yield f"{thread['name']} does not read {name}", _of(number, at, less)

        def twice(graph: Json, number: int = number) -> None:
            threads = graph["kernels"][number]["threads"]
            threads.append(threads[0])

        if kernel["threads"]:
            yield "a thread graph twice", twice


@mutation
def library(graph: Json, _: random.Random) -> Iterator[Edit]:
    for number, kernel in enumerate(graph["kernels"]):
        if kernel["kind"] != "library":
            continue
        function, _, rest = kernel["call"].partition("(")
        arguments = rest.removesuffix(")").split(", ")

        def call(text: str, number: int = number) -> Callable[[Json], None]:
            def apply(graph: Json) -> None:
                graph["kernels"][number]["call"] = text

            return apply

        turned = ", ".join(reversed(arguments[:2]))
        yield "arguments exchanged", call(f"{function}({turned})")
        yield "another function", call(f"torch.add({rest}")
        yield "a transposed argument", call(f"{function}({arguments[0]}.mT, {', '.join(arguments[1:])})")
        yield "one argument for both", call(f"{function}({arguments[0]}, {arguments[0]})")
        yield "twice the product", call(f"2 * {kernel['call']}")
        for key in ("inputs", "outputs"):
            for at, name in enumerate(kernel[key]):

                def gone(graph: Json, number: int = number, key: str = key, at: int = at) -> None:
                    del graph["kernels"][number][key][at]

                def other(graph: Json, number: int = number, key: str = key, at: int = at) -> None:
                    graph["kernels"][number][key][at] = graph["tensors"][0]["name"]

                yield f"{name} not among {key}", gone
                yield f"another tensor for {name} among {key}", other
