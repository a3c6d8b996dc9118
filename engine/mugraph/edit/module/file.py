"""The kernel module: a Python file beside the user's, with everything the edited file calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from mugraph.codegen.launcher import without_deletions
from mugraph.codegen.scratch_places import scratch_places
from mugraph.edit.module.carried import EVIDENCE, carried_text, sealed
from mugraph.edit.module.entry import entry_names, on_tensors
from mugraph.edit.module.evidence import Speed, evidence
from mugraph.edit.module.globals_read import with_looked_up
from mugraph.edit.module.guard_paths import module_classes
from mugraph.edit.module.index_limits import integers_text
from mugraph.edit.module.laid import laid_results
from mugraph.edit.module.masks import masks_of, triangle_text
from mugraph.edit.module.operator import operator_text, torch_type, tuple_text, writer_text
from mugraph.edit.module.parts import PRELUDE
from mugraph.edit.module.ran import TABLES, tables
from mugraph.edit.module.reads import paths_of
from mugraph.edit.module.runtime import END, LOADER, OPERATORS, RUNTIME
from mugraph.edit.module.sizes import cases_of
from mugraph.edit.module.wrapper import wrapper
from mugraph.edit.module.written import places_written, written
from mugraph.edit.names import operator_name
from mugraph.edit.source.record import VARIABLE, Record, record_text
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.ir.dtypes import INTEGERS, itemsize
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.plans.positive import positive_inputs
from mugraph.plans.scales import input_scales
from mugraph.targets import TARGETS, Target, figures_of
from mugraph.version import __version__


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that the statements bind in the module: those in blocks too, those inside functions not."""
    for node in body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.Import(aliases) | ast.ImportFrom(_, aliases):
                yield from (alias.asname or alias.name for alias in aliases)
            case ast.Assign(targets):
                yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
            case ast.AnnAssign(ast.Name(name)):
                yield name
            case ast.Try(first, handlers, orelse):
                yield from _bound([*first, *orelse, *(line for handler in handlers for line in handler.body)])
            case ast.If(_, first, orelse):
                yield from _bound([*first, *orelse])
            case _:
                pass


@cache
def _module_names() -> frozenset[str]:
    """What every kernel module binds. Asked when one is written: the runtime is long to read."""
    bound = _bound(ast.parse(PRELUDE + RUNTIME).body)
    return frozenset((*bound, *TABLES, VARIABLE, EVIDENCE, "_CASES", "_path", "_trouble"))


def module_text(
    plans: Sequence[RegionPlan],
    kernels: Mapping[str, KernelSource],
    *,
    original_path: Path,
    target: Target | None = None,
    speeds: Mapping[str, Speed] | None = None,
    record: Record | None = None,
    edited: str | None = None,
    alone: bool = False,
) -> str:
    """Text of the kernel module for `original_path`.

    kernels: GraphKernel.name -> its source
    target:  the device the kernels were made for; they run on GPUs of exactly its compute capability. Without one, or
             with the CPU's interpreter, that of the device which schedules are then estimated for.
    speeds:  plan name -> what was measured or estimated
    record:  what undoing the edit needs; None while the file is only being looked at
    edited:  the user's file with the calls of the kernels; None likewise
    alone:   with the shared runtime in it

    Raises Rejected when the plans do not fit together.
    """
    kernels = _apart(kernels, plans)
    used = _used_kernels(plans, kernels)
    source = edited if edited is not None else _read(original_path)
    classes = module_classes(source)
    plans = [with_looked_up(plan, source) for plan in plans]
    names = _module_names() | _global_names(plans, used)
    laid = laid_results(plans, kernels)
    shared = {
        step.kernel.name
        for plan in plans
        if "memory" not in plan.without
        for step in plan.steps
        if isinstance(step, KernelStep)
    }
    places = {name: scratch_places(kernel) for name, kernel in kernels.items() if name in shared}
    paths = {plan.name: paths_of(plan, classes) for plan in plans}
    wrappers = [wrapper(plan, kernels, names, classes, paths[plan.name], laid) for plan in plans]
    capability = figures_of(target or TARGETS["cpu"]).capability
    sections = [_header(plans, original_path), PRELUDE.rstrip()]
    written, operators = set[str](), list[str]()
    for plan, wrapped in zip(plans, wrappers, strict=True):
        sections.append(evidence(plan, kernels, (speeds or {}).get(plan.name)))
        for step in plan.steps:
            if isinstance(step, KernelStep) and step.kernel.name not in written:
                written.add(step.kernel.name)
                kernel = kernels[step.kernel.name]
                launcher = kernel.launcher if kernel.name in shared else without_deletions(kernel.launcher)
                sections += [kernel.jit.strip(), launcher.strip()]
                name = operator_name(kernel, original_path)
                of_kernel = (kernel, name, laid[kernel.name], places.get(kernel.name))
                operators.append(writer_text(kernel) if kernel.over else operator_text(*of_kernel))
        sections.append(wrapped.text)
    sections += [_cases(plans), tables(plans, original_path.name, capability, edited, classes, paths)]
    if record is not None:
        sections += [carried_text(plans), record_text(record).rstrip()]
    after = [OPERATORS + "\n\n\n".join(operators), END.rstrip()]
    for own in (sections, after):  # a kernel's text that is no Python must not reach a user's disk
        ast.parse(_joined(own))
    text = _joined([*sections, (RUNTIME if alone else LOADER).rstrip(), *after])
    return text if record is None else sealed(text)


def _read(path: Path) -> str:
    try:
        return SourceFile.decode(path.read_bytes()).text
    except (OSError, EditError):
        return ""


def _joined(sections: Sequence[str]) -> str:
    """Sections two blank lines apart; a comment, or the docstring, one blank line above what follows it."""
    text = sections[0]
    for number, section in enumerate(sections[1:]):
        near = number == 0 or text.rsplit("\n", 1)[-1].startswith("#")
        text += ("\n\n" if near else "\n\n\n") + section
    return text + "\n"


def _header(plans: Sequence[RegionPlan], path: Path) -> str:
    regions = ", ".join(dict.fromkeys(plan.region.function for plan in plans))
    return (
        f'"""GPU kernels for {regions} in {path.name}, written by mugraph {__version__}.\n\n'
        f"{path.name} calls them where `<name>_fits` says yes and runs its own code everywhere else.\n"
        f"`mugraph revert {path.name}` takes them out again. They are compared with PyTorch when this file is run\n"
        "on a GPU, and at their first use on one where they were not tested before. No other text than this one is\n"
        "used: what formats and sorts code leaves the file as it is.\n"
        '"""\n'
        "# fmt: off\n"
        "# isort: skip_file"
    )


def _used_kernels(plans: Sequence[RegionPlan], kernels: Mapping[str, KernelSource]) -> list[KernelSource]:
    used: dict[str, tuple[KernelStep, KernelSource]] = {}
    for plan in plans:
        if not plan.name.isidentifier() or plan.name.startswith("__"):
            raise Rejected(f"{plan.name!r} cannot be a function's name")
        for step in plan.steps:
            if not isinstance(step, KernelStep):
                continue
            name = step.kernel.name
            if name not in kernels:
                raise Rejected(f"there is no source for kernel {name}")
            if name in used and used[name][0].kernel != step.kernel:
                raise Rejected(f"two different kernels are called {name}")
            used.setdefault(name, (step, kernels[name]))
    return [kernel for _, kernel in used.values()]


def _global_names(plans: Sequence[RegionPlan], kernels: Sequence[KernelSource]) -> frozenset[str]:
    """Names that the plans and kernels bind in the module. Raises Rejected when one would mean two things. A helper
    function that several kernels define with the same text counts once."""
    bound: list[tuple[str, str]] = []
    for plan in plans:
        bound += [(name, plan.name) for name in entry_names(plan)]
    for kernel in kernels:
        for text in (kernel.jit, kernel.launcher):
            bound += [(name, ast.dump(node)) for node in ast.parse(text).body for name in _binds(node)]
        bound += [(f"{prefix}_{kernel.name}", kernel.name) for prefix in ("_made_by", "")]
    meanings: dict[str, str] = dict.fromkeys(_module_names(), "")
    for name, meaning in bound:
        if meanings.setdefault(name, meaning) != meaning:
            raise Rejected(f"the kernel module would use the name {name} for two things")
    if len({plan.name for plan in plans}) < len(plans):
        raise Rejected("two regions have the same name")
    return frozenset(meanings)


def _binds(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _apart(kernels: Mapping[str, KernelSource], plans: Sequence[RegionPlan]) -> dict[str, KernelSource]:
    """The kernels. A @triton.jit function with the same name as a region's function is renamed ("lora" to
    "lora_kernel")."""
    public = {name for plan in plans for name in (plan.name, f"{plan.name}_fits")}
    apart = dict(kernels)
    for key, kernel in kernels.items():
        for name in [name for node in ast.parse(kernel.jit).body for name in _binds(node) if name in public]:
            jit = re.sub(rf"\b{re.escape(name)}\(", f"{name}_kernel(", apart[key].jit)
            launcher = re.sub(rf"\b{re.escape(name)}\[", f"{name}_kernel[", apart[key].launcher)
            apart[key] = replace(apart[key], jit=jit, launcher=launcher)
    return apart


def _cases(plans: Sequence[RegionPlan]) -> str:
    """The table of how to try a region's kernels: functions, where they were tested, the inputs' shapes, strides, types
    and standard deviations (of masks: what they hold; of integers: which they may be, if that is known; None: places to
    write to), "positive" where they have no sign, their skew if they have one; and the positions of inputs that it
    writes to, if any."""
    lines = ["_CASES = {"]
    for plan, case, (values, numbers) in [(one, *named) for one in plans for named in cases_of(one).items()]:
        lines.append(f'    "{case}": (')
        functions = on_tensors(plan), f"_{plan.name}_reference"
        if numbers:
            given = ", ".join(map(str, numbers))
            functions = tuple(f"lambda *tensors: {one}(*tensors, {given})" for one in functions)
        lines += [*(f"        {one}," for one in functions), f"        {_tested_on(plan)!r},"]
        lines.append("        (")
        scales, places, positive = input_scales(plan), places_written(plan.region), positive_inputs(plan)
        for live_in in plan.region.live_ins:
            info = values[live_in.value]
            shape, strides, dtype = tuple_text(info.shape), tuple_text(info.strides), torch_type(info.dtype)
            mask = masks_of(plan).get(live_in.value)
            drawn = f"({triangle_text(mask, info)})" if mask else f"{scales.get(live_in.value, 1.0):.2g}"
            drawn = "None" if live_in.value in places else drawn
            if info.dtype in INTEGERS and itemsize(info.dtype) > 1 and not mask:
                drawn = integers_text(replace(plan.region, values=values), live_in.value) or drawn
            sign = ', "positive"' if live_in.value in positive else ""
            skew = f", {info.skew}" if info.skew else ""
            lines.append(f"            ({shape}, {strides}, {dtype}, {drawn}{sign}{skew}),")
        lines += ["        ),", *([f"        {tuple_text(changed)},"] if (changed := written(plan.region)) else [])]
        lines.append("    ),")
    return "\n".join([*lines, "}"])


def _tested_on(plan: RegionPlan) -> tuple[str, str] | None:
    """The GPU and the version of Triton that all its kernels were compared with float64 on; None where one was not
    compared."""
    places = {
        (step.verdict.float_device or "", step.verdict.versions.get("triton", ""))
        for step in plan.steps
        if isinstance(step, KernelStep)
    }
    place = places.pop() if len(places) == 1 else ("", "")
    return place if place[0] not in ("", "interpreter") else None
