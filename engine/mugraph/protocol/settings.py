"""Every setting, declared once. To add one, add a field here and run `make settings`.

From these fields follow what the server reads and how it checks it, what the engine is told, the options of a run, and
what the editor's extension shows: `make settings` writes its `package.json` and the table in its README. What is left
to do is to read the field where the setting has its effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_type_hints

from mugraph.protocol.setting_kinds import CommandLine, Count, Flag, OneOf, Seconds, Setting, SomeOf, Target, Text
from mugraph.protocol.targets import DEVICES, EXAMPLE, NAMES

MARKED = ", ".join(f"`{name}`" for name in DEVICES)
SearchOn = Literal["save", "open", "demand"]
CompareWith = Literal["both", "code", "best"]
TunerName = Literal["walk", "mcfuser", "opevo", "random", "g-bfs", "n-a2c", "boosted"]
Optimisation = Literal["layouts", "threads", "order", "memory"]
"""Mirage's optimisations of a verified μGraph (§6): layouts of what kernels hand to one another, thread graphs, the
order of a block graph's operators, and memory that tensors share."""
LogLevel = Literal["error", "warning", "info", "debug"]
Theme = Literal["light", "dark"]
Tracing = Literal["off", "messages", "verbose"]


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


@dataclass(frozen=True)
class EngineSettings:
    """What the engine is told. A field whose key is "" is for other clients of the engine than an editor."""

    target: Annotated[
        str,
        Setting(
            "target",
            Target(),
            f"The device that kernels are made for: `auto` takes the GPU that is there, {MARKED} or an architecture"
            f" such as `{EXAMPLE}` names one.",
            order=3,
            again=True,
            option=("--target", f"{NAMES}."),
        ),
    ] = "auto"
    budget_s: Annotated[
        float,
        Setting(
            "search.budget",
            Seconds(),
            "Seconds of search for one region.",
            order=5,
            called="the budget",
            option=("--budget", "Seconds for the search of one kernel."),
        ),
    ] = 20.0
    file_budget_s: Annotated[
        float,
        Setting(
            "search.fileBudget",
            Seconds(),
            "Seconds of search for a whole file; what has not begun by then is not searched, and said.",
            order=5,
            called="the budget of a file",
            option=("--file-budget", "Seconds for a whole file, tracing counted; what has not begun by then is left."),
        ),
    ] = 45.0
    max_kernels: Annotated[
        int,
        Setting(
            "search.kernels",
            Count(),
            "Kernels that may take the place of one part of a region that is searched as a whole.",
            order=5,
            called="the number of kernels",
            option=("--kernels", "Kernels that may take the place of one search unit."),
        ),
    ] = 5
    max_ops: Annotated[
        int,
        Setting(
            "search.operators",
            Count(),
            "Operators in a kernel's block graph, up to which all programs are looked for.",
            order=5,
            called="the number of operators",
            option=("--operators", "Operators of a block graph, up to which all are found."),
        ),
    ] = 11
    trace_timeout_s: Annotated[
        float,
        Setting(
            "",
            Seconds(1),
            called="the time-out of tracing",
            option=("--trace-timeout", "Seconds the file's own code may run for."),
        ),
    ] = 60.0
    measure: Annotated[
        bool,
        Setting(
            "search.measure",
            Flag(),
            "Time the kernels on the GPU, where there is one. Otherwise times are estimates, and say so.",
            order=6,
            again=True,
            option=("--no-measure", "Estimate only, even with a GPU."),
        ),
    ] = True
    compare_with: Annotated[
        CompareWith,
        Setting(
            "compareWith",
            OneOf(
                get_args(CompareWith),
                (
                    "Faster than the code as it runs, and no slower than the best that PyTorch offers for it",
                    "Faster than the code as it runs; torch.compile is not timed",
                    "Faster than the best that PyTorch offers for it: torch.compile and max-autotune too",
                ),
            ),
            "What a kernel has to be faster than to be offered.",
            order=6,
            again=True,
            option=("--compare-with", "What a kernel has to be faster than: both, code or best."),
        ),
    ] = "both"
    exact: Annotated[
        bool,
        Setting(
            "exact",
            Flag(),
            "Offer only kernels whose results are known to be, bit for bit, those of PyTorch.",
            order=6,
            again=True,
            option=("--exact", "Offer only kernels that are known to have the same bits as PyTorch."),
        ),
    ] = False
    overlap: Annotated[
        bool,
        Setting(
            "overlap",
            Flag(),
            "Have a kernel start while the kernel before it ends, where that was measured to be faster"
            " (programmatic dependent launch, from compute capability 9.0 on).",
            order=6,
            again=True,
            option=("--no-overlap", "Let every kernel wait until the one before it has ended."),
        ),
    ] = True
    tuner: Annotated[
        TunerName,
        Setting(
            "tuner",
            OneOf(
                get_args(TunerName),
                (
                    "The best by the cost model, then what is one step from the fastest of them",
                    "MCFuser's: a population, its best by MCFuser's model, until they no longer get faster",
                    "OpEvo's: evolution that mutates by random walks, the first generation chosen by the cost model",
                    "Schedules drawn at random",
                    "Greedy best-first search: a few neighbours of the fastest that was not looked around yet",
                    "Neighborhood actor advantage critic: a network learns which steps make a kernel faster",
                    "Boosted trees, which learn from what was measured; needs scikit-learn",
                ),
            ),
            "What decides which kernels are measured, where there is a GPU.",
            order=6,
            again=True,
            option=("--tuner", f"What decides which kernels are measured: {_listed(get_args(TunerName))}."),
        ),
    ] = "walk"
    trials: Annotated[
        int,
        Setting(
            "trials",
            Count(most=10_000),
            "Kernels that are measured for one part of a region at most, where there is a GPU.",
            order=6,
            again=True,
            called="the number of trials",
            option=("--trials", "Kernels that are measured for one search unit at most."),
        ),
    ] = 40
    without: Annotated[
        str,
        Setting(
            "",
            SomeOf(get_args(Optimisation)),
            option=(
                "--without",
                "Optimisations of verified μGraphs to leave out, to see what they are worth:"
                f" {_listed(get_args(Optimisation))}, or several with commas between them.",
            ),
        ),
    ] = ""
    recorded: Annotated[
        bool,
        Setting("search.recorded", Flag(), "Use shapes that `mugraph record` has seen.", order=6, again=True),
    ] = True


@dataclass(frozen=True)
class Settings(EngineSettings):
    """What the server is told: the section `mugraph` of the editor's configuration, and the client's state."""

    enable: Annotated[bool, Setting("enable", Flag(), "Look at Python files at all.", order=0, again=True)] = True
    interpreter: Annotated[
        str,
        Setting(
            "interpreter",
            Text(),
            "The Python that runs mugraph and traces your code. Empty: the interpreter selected in the editor, else"
            " `python3` on the path. `~` and `${workspaceFolder}` are understood.",
            order=1,
            restricted=True,
        ),
    ] = ""
    engine_command: Annotated[
        tuple[str, ...],
        Setting(
            "engine.command",
            CommandLine(),
            "Start the engine with this command instead, for example on a machine with a GPU: `ssh gpu-box python -m"
            " mugraph.worker`. It must see the files under the same paths.",
            order=2,
            restricted=True,
        ),
    ] = ()
    search_on: Annotated[
        SearchOn,
        Setting(
            "search.when",
            OneOf(
                get_args(SearchOn),
                ("Only when it is saved", "When a file opens and when it is saved", "Only when you ask for it"),
            ),
            "When to search. Code that has not changed since is never searched twice.",
            order=4,
            again="open",
        ),
    ] = "open"
    code_lens: Annotated[
        bool,
        Setting(
            "views.codeLens",
            Flag(),
            "The line above a function: how much faster, and a click to have it.",
            order=7,
        ),
    ] = True
    inlay_hints: Annotated[
        bool,
        Setting("views.inlayHints", Flag(), "The speedup at the end of the code that a kernel can replace.", order=8),
    ] = True
    diagnostics: Annotated[
        bool,
        Setting(
            "views.diagnostics",
            Flag(),
            "One hint for each region, drawn as three dots under its first letters; a warning where a kernel no longer"
            " fits its source.",
            order=9,
        ),
    ] = True
    hover: Annotated[
        bool,
        Setting("views.hover", Flag(), "The μGraph's picture when the mouse rests on the code.", order=10),
    ] = True
    log_level: Annotated[
        LogLevel,
        Setting(
            "log.level",
            OneOf(get_args(LogLevel)),
            "How much the server writes to its log and to the output channel.",
            scope="window",
            order=12,
        ),
    ] = "info"
    trusted: Annotated[
        bool,
        Setting("trusted", Flag(), "Whether the engine may run the workspace's code.", scope=None, again=True),
    ] = True
    theme: Annotated[
        Theme,
        Setting("theme", OneOf(get_args(Theme)), "The editor's; pictures have its colours.", scope=None),
    ] = "light"


@dataclass(frozen=True)
class ExtensionSettings:
    """What the editor's extension keeps for itself. The server says nothing of a key that begins as one of these."""

    install_from: Annotated[
        str,
        Setting(
            "server.installFrom",
            Text(),
            "What *Install mugraph in the Selected Environment* gives to pip: a name, an address or a folder.",
            scope="window",
            order=11,
            restricted=True,
        ),
    ] = "mugraph"
    trace: Annotated[
        Tracing,
        Setting(
            "trace.server",
            OneOf(get_args(Tracing)),
            "Also write the messages between the editor and the server to the output channel.",
            scope="window",
            order=13,
        ),
    ] = "off"


@dataclass(frozen=True)
class Declared:
    """A setting with the name and the default of its field."""

    name: str
    default: Any
    setting: Setting


@cache
def declared(of: type) -> tuple[Declared, ...]:
    """The settings of one of the classes here, in the order of its fields."""
    hints = get_type_hints(of, include_extras=True)
    return tuple(Declared(one.name, one.default, _setting(hints[one.name])) for one in fields(of))


def by_key(of: type) -> Mapping[str, Declared]:
    """The settings that an editor has, by their key."""
    return {one.setting.key: one for one in declared(of) if one.setting.key}


def _setting(hint: Any) -> Setting:
    return next(word for word in get_args(hint) if isinstance(word, Setting))
