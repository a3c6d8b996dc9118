"""Kernels that somebody else wrote: is a launcher with its kernels the same function as a program?"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mugraph.ir.lax import why_not_lax
from mugraph.ir.program import TensorProgram
from mugraph.solve.beside import Beside
from mugraph.triton_text.check import check_text
from mugraph.triton_text.verdict import TextVerdict
from mugraph.verification.float_test import FloatTester
from mugraph.verification.lowering.check import check_lowering
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import TARGET, fresh_seed

_MOST_CONFIGURATIONS = 64
_SEEDS = 1 << 32
"""Of the float test's generators."""


@dataclass(frozen=True)
class KernelVerdict:
    """where: kernel, tile, tensor, element and line of a counterexample. check: which one rejects it: of the text as
    TextVerdict says, or "float test" or "lowering"; "" where none does"""

    verdict: Verdict
    where: Mapping[str, object] | None = None
    float_note: str | None = None
    check: str = ""


def verify_kernel(
    reference: Beside, text: str, launcher: str, *, tester: FloatTester | None, seed: int | None = None
) -> KernelVerdict:
    """Over the fields and in memory at the program's own sizes, in each configuration of its kernels; then the float
    test. Where Theorem 2 covers the text, it is run with as many seeds as the bound asks for, in each configuration.

    tester: None runs none. seed: of the random inputs, to repeat an earlier run; None takes a fresh one
    """
    seed = fresh_seed() if seed is None else seed
    found = _verified(reference, text, launcher, tester, seed)
    return replace(found, verdict=replace(found.verdict, seed=seed))


def _verified(reference: Beside, text: str, launcher: str, tester: FloatTester | None, seed: int) -> KernelVerdict:
    program, outputs = reference.program, list(reference.outputs)
    target = TARGET if program.is_lax else None
    shapes = {name: (info.shape, info.strides) for name, info in reference.seen.items()}
    inputs = matched(program, text, launcher)
    if isinstance(inputs, str):
        return KernelVerdict(Verdict(False, inputs))
    found = check_text(program, text, launcher, inputs, outputs, seed, shapes=shapes, target=target, within=True)
    every = [found]
    for configuration in range(1, min(found.configurations, _MOST_CONFIGURATIONS)):
        if found.passed:
            wanted = target if all(one.bound is not None for one in every) else None
            found = check_text(
                program, text, launcher, inputs, outputs, seed, configuration, shapes=shapes, target=wanted, within=True
            )
            every.append(found)
            if not found.passed:
                found = replace(found, reason=f"in configuration {configuration}, {found.reason}")
    if found.passed and found.without:
        found = replace(found, passed=False, reason=found.without, check="without kernels")
    if not found.passed:
        return KernelVerdict(Verdict(False, found.reason, program.is_lax, 1), _where(found), check=found.check)
    if found.configurations > _MOST_CONFIGURATIONS:
        reason = f"the kernels have {found.configurations} configurations, of which {_MOST_CONFIGURATIONS} were run"
        return KernelVerdict(Verdict(False, reason, program.is_lax, 1))
    said = every[0].said + (f"; in each of {len(every)} configurations" if len(every) > 1 else "")
    weakest = next((one for one in every if one.bound is None), max(every, key=lambda one: one.bound or 0.0))
    note = weakest.bound_note if program.is_lax else (why_not_lax(program.ops) or "")
    seeds = min(one.seeds for one in every)
    verdict = Verdict(
        True, None, program.is_lax, seeds, (dict(program.sizes),), weakest.bound, note, indexing=said, text=said
    )
    if tester is None:
        return KernelVerdict(verdict)
    lowering = check_lowering(reference.unit, reference.smaller, tester)
    verdict = replace(verdict, lowering=lowering)
    if lowering.passed is False:
        return KernelVerdict(replace(verdict, passed=False, reason=lowering.words), check="lowering")
    tested = tester.test(text, launcher, program, inputs, outputs, seed % _SEEDS, shapes=shapes)
    if tested.passed:
        return KernelVerdict(
            replace(verdict, max_rel_error=tested.max_rel_error, eager_rel_error=tested.eager_rel_error,
                    ulps=tested.ulps, float_device=tested.device, float_sizes=dict(program.sizes))
        )  # fmt: skip
    if not tested.scenarios:  # it did not run: nothing is known, and nothing is said to be wrong
        return KernelVerdict(verdict, None, f"no floating-point test could be run: {tested.reason}")
    reason = f"in floating point, {tested.reason}"
    return KernelVerdict(replace(verdict, passed=False, reason=reason), check="float test")


def matched(program: TensorProgram, text: str, launcher: str) -> list[str] | str:
    """The program's tensors in the order of the launcher's parameters: by name where the names are the same, else as
    they come. One sentence where they do not fit."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return f"the kernel's file is no Python: {error}"
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == launcher]
    if not found:
        return f"the kernel's file has no function {launcher}"
    spec = found[-1].args
    required = [one.arg for one in (*spec.posonlyargs, *spec.args)]
    with_default = required[len(required) - len(spec.defaults) :]
    tensors = _sources(program)
    names = {source.rsplit(".", 1)[-1] if "." in source else source: name for source, name in tensors}
    names |= {source.replace(".", "_").removeprefix("self_"): name for source, name in tensors}
    wanted = required[: len(tensors)]
    if len(wanted) < len(tensors) or any(one not in with_default for one in required[len(tensors) :]):
        return f"{launcher} takes {len(required)} arguments, the function has {len(tensors)} tensors"
    if set(wanted) <= names.keys() and len({names[one] for one in wanted}) == len(tensors):
        return [names[one] for one in wanted]
    return [name for _, name in tensors]


def _sources(program: TensorProgram) -> Sequence[tuple[str, str]]:
    """What the code calls each piece of memory, and the first tensor that it is."""
    found: dict[str, str] = {}
    for tensor in (*program.tensors, *program.indices):
        found.setdefault(tensor.source or tensor.name, tensor.name)
    return list(found.items())


def _where(found: TextVerdict) -> Mapping[str, object] | None:
    return {**found.where, "line": found.line, "check": found.check} if found.line or found.where else None
