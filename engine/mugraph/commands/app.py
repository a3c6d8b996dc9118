"""What each command is called and takes. Commands import what they need when they run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mugraph.commands.common import FAILED, INTERRUPTED, USAGE, WrongUsage, need, say_error, show_log, where
from mugraph.commands.setting_options import tuner_named, with_settings
from mugraph.freed_memory import keep_freed_memory
from mugraph.one_thread import set_one_thread
from mugraph.protocol.settings import EngineSettings

app = typer.Typer(
    name="mugraph",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output and nothing else.")]
_Log = Annotated[bool, typer.Option("--verbose", "-v", help="Show what is logged, on standard error.")]
_Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say what was searched, pruned and why; show what is logged.")
]
_Executor = Annotated[
    str, typer.Option(help="Where to search: inline, processes, processes:N, ray or ray://HOST:PORT (mugraph[ray]).")
]


@app.callback()
def common(verbose: _Log = False) -> None:
    """Finds the parts of PyTorch code that fewer and better GPU kernels can compute, and writes those kernels."""
    if verbose:
        show_log()


@app.command()
@with_settings
def optimize(
    path: Annotated[str, typer.Argument(metavar="PATH[:QUALNAME]", help="A Python file; a function or class in it.")],
    json: _Json = False,
    apply: Annotated[bool, typer.Option("--apply", help="Write the kernel module and edit the file.")] = False,
    *,
    settings: EngineSettings,
    no_store: Annotated[bool, typer.Option("--no-store", help="Neither use nor keep earlier results.")] = False,
    executor: _Executor = "inline",
    called_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A file with shapes that calls this one. Without, those that import it are looked for.",
        ),
    ] = None,
    verbose: _Verbose = False,
) -> int:
    """Show what can be fused in a file, the kernels, and the evidence that they are right."""
    place, callers = where(path), [where(one).path for one in called_from or []]
    need("torch", "triton")
    set_one_thread(os.environ)
    _keep_bytecode()
    keep_freed_memory()
    if verbose:
        show_log()
    from mugraph.commands.optimize import optimize as command
    from mugraph.pipeline import Options

    options = Options.of(settings, executor)
    return command(place, options, as_json=json, apply=apply, verbose=verbose, use_store=not no_store, callers=callers)


def _keep_bytecode() -> None:
    from mugraph.bytecode import BYTECODE, keep_bytecode
    from mugraph.store.place import cache_folder

    keep_bytecode(cache_folder() / BYTECODE)


@app.command()
def revert(file: Annotated[str, typer.Argument(help="A file that --apply has edited.")]) -> int:
    """Restore the original text, byte for byte."""
    place = where(file)
    from mugraph.commands.revert import revert as command

    return command(place)


@app.command()
def verify(
    path: Annotated[str, typer.Argument(metavar="PATH:QUALNAME", help="The code to compare with.")],
    ugraph: Annotated[
        Path | None,
        typer.Option("--ugraph", help="A JSON file with μGraphs, or a checkpoint of Mirage's."),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="PATH:LAUNCHER", help="A function that launches Triton kernels.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Repeat a verification with the random inputs of this seed.")
    ] = None,
    json: _Json = False,
) -> int:
    """Say for each μGraph, or for a Triton kernel, whether it is the same function as the code."""
    place = where(path)
    if (ugraph is None) == (kernel is None):
        raise WrongUsage("give either --ugraph FILE or --kernel PATH:LAUNCHER")
    need("torch")
    set_one_thread(os.environ)
    if kernel is not None:
        from mugraph.commands.verify_kernel import verify as of_kernel

        return of_kernel(place, where(kernel), as_json=json, seed=seed)
    assert ugraph is not None
    from mugraph.commands.verify import verify as command

    return command(place, ugraph, as_json=json, seed=seed)


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Samples; all of them when none is named. Or: search, then programs of the papers. "
            "Or: models, then those of the samples' language and image models; all. Or: files, then files and folders."
        ),
    ] = None,
    json: _Json = False,
    budget: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds for the search of one kernel: 20, or 60 for the search itself."),
    ] = None,
    samples: Annotated[Path, typer.Option(help="The folder of the samples.")] = Path("samples"),
    executor: _Executor = "inline",
    against: Annotated[
        str,
        typer.Option(
            help="Of files: what gains are over, of eager, torch.compile and max-autotune; all. Also reduce-overhead, "
            "of which calls alone are timed."
        ),
    ] = "",
    resume: Annotated[
        Path | None, typer.Option(help="Of files: keep answers in this file, and do not run those again that it has.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Of files: draw the gains in this file, an SVG.")] = None,
    jobs: Annotated[
        int,
        typer.Option(min=1, help="Of files: how many side by side, on all GPUs alike; one at a time is timed on each."),
    ] = 1,
    within: Annotated[
        float | None, typer.Option(min=1.0, help="Of files: seconds after which no further file is begun.")
    ] = None,
    limit: Annotated[float, typer.Option(min=1.0, help="Of files: seconds that one may take.")] = 600.0,
    target: Annotated[str, typer.Option(help="Of files: the device that kernels are made for.")] = "auto",
    compare_with: Annotated[
        str,
        typer.Option(
            help="Of files: what kernels must be faster than to be offered: code, best or both, as the setting "
            "mugraph.compareWith. Where nothing but eager is timed: code."
        ),
    ] = "",
    tuner: Annotated[
        str, typer.Option(help="What decides which kernels are measured, as the setting mugraph.tuner.")
    ] = EngineSettings.tuner,
    trials: Annotated[
        int, typer.Option(min=1, help="Kernels that are measured for one search unit at most.")
    ] = EngineSettings.trials,
    file_budget: Annotated[
        float, typer.Option(min=0.1, help="Of files: seconds for the search units of one, as mugraph optimize has it.")
    ] = EngineSettings.file_budget_s,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Of files of KernelBench's convention: time a call of the whole model as well."),
    ] = False,
) -> int:
    """Time the samples' kernels against eager PyTorch, torch.compile and its max-autotune mode; with the word search,
    the search itself on the papers' programs; with the word models, whole models; with the word files, any files with
    shapes."""
    need("torch", "triton")
    _keep_bytecode()
    chosen_tuner = tuner_named(tuner)
    if names and names[0] in ("files", "models"):
        from mugraph.commands.bench_files import Outputs, bench_files, comparison, models_in
        from mugraph.commands.bench_one import Asked

        if names[0] == "models":
            names, whole = ["files", *models_in(samples / "models", names[1:])], True
        peers = [name.strip() for name in against.split(",") if name.strip()]
        chosen = compare_with or ("code" if peers == ["eager"] else "both")
        compared = comparison(chosen)
        asked = Asked(
            budget or 20.0, executor, target, compared, peers, limit, chosen_tuner, trials, file_budget, whole
        )
        return bench_files(names[1:], asked, Outputs(json, resume, plot), jobs, within)
    if names and names[0] == "search":
        from mugraph.commands.bench_search import bench_search

        return bench_search(names[1:], samples, budget or 60.0, executor, as_json=json)
    from mugraph.commands.bench import bench as command
    from mugraph.options import Options

    options = Options(budget_s=budget or 20.0, executor=executor, tuner=chosen_tuner, trials=trials)
    return command(names or [], samples, options, as_json=json)


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def record(
    command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="What to run, after --.")] = None,
) -> int:
    """Run a program once and remember how its functions were called.

    What is kept of a tensor is its shape, strides, type and device, never
    its values. One exception: a module's buffer that is zero, one or minus
    infinity on either side of a diagonal, as a causal mask is, is kept as
    such. Of other arguments and attributes, numbers, flags and texts are
    kept. All of it stays in a folder on this machine.
    """
    from mugraph.commands.record import record as command_

    return command_(command or [])


@app.command()
def check(
    what: Annotated[
        list[str] | None, typer.Argument(metavar="PATHS | COMMAND", help="Files and folders; with --run, what to run.")
    ] = None,
    json: _Json = False,
    run: Annotated[
        bool,
        typer.Option("--run", help="Run a program: --run -- python train.py [--json]"),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Draw random inputs by this seed, not by those in the modules.")
    ] = None,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Trace the code that was replaced, which runs it, and compare it with PyTorch."),
    ] = False,
) -> int:
    """Verify generated kernels again; with --run, say which calls of a program they took, and why not the others."""
    if not run:
        # Of the products of small matrices that verification computes, threads would only wait for each other. NumPy's
        # library reads this when it is imported, which is now.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from mugraph.commands.check import check_paths, check_run

    given = what or []
    if run:
        if given and given[-1] == "--json" and not json:  # the contract has it there as well
            given, json = given[:-1], True
        return check_run(given, as_json=json)
    need("torch")
    return check_paths(given, as_json=json, seed=seed, trace=trace)


@app.command()
def doctor(json: _Json = False) -> int:
    """Say what is installed, what does not fit, and what to do about it."""
    from mugraph.commands.doctor import doctor as command

    return command(as_json=json)


@app.command()
def server(
    stdio: Annotated[bool, typer.Option("--stdio", help="Speak on standard input and output.")] = False,
    tcp: Annotated[int | None, typer.Option(help="Wait for one client on this port; 0 chooses a free one.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
) -> int:
    """The language server, for editors."""
    need("pygls", "watchdog", "psutil")
    from mugraph_server.main import main as serve

    if stdio == (tcp is not None):
        raise WrongUsage("say how to speak: --stdio, or --tcp PORT")
    return serve(["--stdio"] if tcp is None else ["--tcp", str(tcp), "--host", host])


def invoke(arguments: Sequence[str]) -> int:
    """Runs one command. Its exit status; raises what is nobody's mistake but ours, and ModuleNotFoundError."""
    try:
        status: object = app(args=list(arguments), standalone_mode=False)
    except WrongUsage as error:
        say_error(str(error))
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        say_error("interrupted")
        return INTERRUPTED
    except typer.Exit as exit:
        return exit.exit_code
    except BrokenPipeError:
        return FAILED  # whoever read our output has gone
    except Exception as error:
        message = getattr(error, "format_message", None)  # of typer's own errors
        if message is None:
            raise
        if message():  # empty where typer has shown the help
            say_error(f"{message()} (mugraph --help shows what there is)")
        return USAGE
    if status == INTERRUPTED:  # typer turns Ctrl-C into this status before we see it
        say_error("interrupted")
    return status if isinstance(status, int) else 0
