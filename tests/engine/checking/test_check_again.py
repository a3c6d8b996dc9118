"""`mugraph check PATHS`: what was written is verified again, and whatever was changed is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.checking.again import Here, check_again, modules_in
from mugraph.cli import run
from mugraph.edit.apply import apply_files
from mugraph.edit.module.carried import carried, graph_of, sealed
from mugraph.ir.mugraph import MuGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.verification.document import verify_mugraph
from mugraph.verification.verdict import Proof, Verdict

from tests.engine.edit.conftest import PART, SOURCE, Maker, gate_source

HERE = Here(None, {"torch": "2.13.0+cpu", "triton": "3.7.1"})


def applied(folder: Path, change: Callable[[RegionPlan], RegionPlan] = lambda plan: plan) -> Path:
    path = folder / "gated_model.py"
    path.write_text(SOURCE)
    apply_files(path, [change(Maker({}).plan(SOURCE, PART))], {"gate": gate_source()})
    return folder / "gated_model_mugraph.py"


def problems(folder: Path, here: Here = HERE) -> list[str]:
    [(module, record)] = modules_in([folder])
    assert not isinstance(record, str), record
    [checked] = check_again(module, record, here)
    assert checked.function == "Gated.forward"
    return list(checked.problems)


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_what_was_written_holds(tmp_path: Path):
    module = applied(tmp_path)
    assert problems(tmp_path) == []
    [step] = (carried(module.read_text()) or {})["gated"]
    assert step.verdict.bound == 3e-10
    assert step.verdict.float_device == "interpreter"
    assert [kernel.name for kernel in step.graph.kernels] == ["gate"]


def test_the_users_file_is_checked_by_its_kernel_module(tmp_path: Path):
    module = applied(tmp_path)
    assert [found for found, _ in modules_in([tmp_path / "gated_model.py"])] == [module]
    assert [found for found, _ in modules_in([module])] == [module]
    edited(module, '"regions"', '"region"')
    assert [(found, type(record)) for found, record in modules_in([tmp_path / "gated_model.py"])] == [(module, str)]
    (tmp_path / "another.py").touch()
    assert list(modules_in([tmp_path / "another.py"])) == []


def test_the_replaced_source_was_changed(tmp_path: Path):
    applied(tmp_path)
    edited(tmp_path / "gated_model.py", "* self.u", "+ self.u")
    [problem] = problems(tmp_path)
    assert "was edited by hand" in problem


def test_other_source_may_change(tmp_path: Path):
    applied(tmp_path)
    edited(tmp_path / "gated_model.py", "return y + 1", "return y + 2")
    assert problems(tmp_path) == []


def test_a_kernel_was_edited(tmp_path: Path):
    module = applied(tmp_path)
    edited(module, "tl.sigmoid(product) * u", "tl.sigmoid(product) + u")
    [problem] = problems(tmp_path)
    assert problem == (
        "gated_model_mugraph.py was edited since it was written: its kernels are not those that were tested"
    )


def test_evidence_that_is_missing_or_damaged(tmp_path: Path):
    module = applied(tmp_path)
    text = module.read_text()
    for damaged in (
        text.replace("_EVIDENCE = {", "_OTHER = {"),
        re.sub(r"(    'gated': \(\n        ')[^']{20}", r"\1", text),
        text.replace("    'gated': (", "    'another': ("),
    ):
        module.write_text(damaged)
        found = problems(tmp_path)
        assert any("evidence" in problem for problem in found), found


def test_a_graph_that_is_another_function_is_found_by_the_verifier(tmp_path: Path):
    """All else fits: whoever changed it has sealed it as well."""

    def wrong(plan: RegionPlan) -> RegionPlan:
        product, step = plan.steps
        assert isinstance(step, KernelStep)
        block = step.kernel.block
        assert block is not None
        ops = tuple(replace(op, kind=Kind.ADD) if op.kind is Kind.MUL else op for op in block.ops)
        return replace(plan, steps=(product, replace(step, kernel=replace(step.kernel, block=replace(block, ops=ops)))))

    module = applied(tmp_path, wrong)
    assert module.read_text() == sealed(module.read_text())
    [problem] = problems(tmp_path)
    assert problem.startswith("gate is not the function that it replaces: ")


@pytest.mark.parametrize(
    ("here", "problem"),
    [
        (Here(None, {**HERE.versions, "triton": "3.9.0"}), "gate was tested with triton 3.7.1, here is 3.9.0"),
        (Here(None, {"torch": "2.13.0"}), "gate was tested with triton 3.7.1, here is none"),
        (Here("NVIDIA H200", HERE.versions), "gate was tested in Triton's interpreter, here is NVIDIA H200"),
    ],
)
def test_another_library_or_device(tmp_path: Path, here: Here, problem: str):
    applied(tmp_path)
    assert problems(tmp_path, here) == [problem]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "pkg").mkdir()
    module = applied(tmp_path / "pkg", lambda plan: plan)
    (tmp_path / "own_mugraph.py").write_text("x = 1\n")
    status = run(["check", str(tmp_path), "--json"])
    [region] = json.loads(capsys.readouterr().out)["regions"]
    assert (region["function"], region["module"]) == ("Gated.forward", str(module))
    assert status == (0 if region["passed"] else 1)
    module.write_text(module.read_text().replace("_REVERT = {", "_REVERT = {1"))
    assert run(["check", str(tmp_path)]) == 1
    assert "was edited by hand and no longer holds what undoing needs" in capsys.readouterr().out
    assert run(["check", str(tmp_path / "own_mugraph.py")]) == 0
    assert "nothing to check" in capsys.readouterr().out


def test_a_seed_that_is_none(tmp_path: Path):
    assert run(["check", str(tmp_path), "--seed", "-1"]) == 2


@pytest.mark.parametrize(("arguments", "said"), [([], "what shall be checked?"), (["nowhere"], "does not exist")])
def test_a_bad_command_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str):
    assert run(["check", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_proof_that_cannot_be_repeated_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def proved(plan: RegionPlan) -> RegionPlan:
        proof = Proof(True, {"m": 2}, "by exact expressions")
        steps = [
            replace(step, verdict=replace(step.verdict, proof=proof)) if isinstance(step, KernelStep) else step
            for step in plan.steps
        ]
        return replace(plan, steps=tuple(steps))

    module = applied(tmp_path, proved)
    assert "proved equal for all real inputs at which both are defined, at m=2" in " ".join(
        module.read_text().replace("#", "").split()
    )
    assert problems(tmp_path) == []
    monkeypatch.setattr("mugraph.verification.proof.STEPS", 1)
    [problem] = problems(tmp_path)
    assert "is said to be proved, and is not: its expressions take too much work" in problem


def test_the_first_verification_is_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """With the seed that the module carries, where none is given."""
    drawn: list[int | None] = []

    def verified(program: TensorProgram, graph: MuGraph, seed: int | None = None) -> Verdict:
        drawn.append(seed)
        return verify_mugraph(program, graph, seed)

    def with_seed(plan: RegionPlan) -> RegionPlan:
        steps = [
            replace(step, verdict=replace(step.verdict, seed=4711)) if isinstance(step, KernelStep) else step
            for step in plan.steps
        ]
        return replace(plan, steps=tuple(steps))

    monkeypatch.setattr("mugraph.checking.again.verify_mugraph", verified)
    module = applied(tmp_path, with_seed)
    assert "seed      4711" in module.read_text()
    run(["check", str(tmp_path), "--json"])
    [region] = json.loads(capsys.readouterr().out)["regions"]
    assert region["seeds"] == [4711]
    run(["check", str(tmp_path), "--seed", "12", "--json"])
    [region] = json.loads(capsys.readouterr().out)["regions"]
    assert region["seeds"] == [12]
    assert drawn == [4711, 12]


def test_a_seed_repeats_a_verdict() -> None:
    plan = Maker({}).plan(SOURCE, PART)
    [step] = [step for step in plan.steps if isinstance(step, KernelStep)]
    first = verify_mugraph(step.unit.program, graph_of(step))
    assert first.seed is not None
    assert verify_mugraph(step.unit.program, graph_of(step), first.seed) == first
    assert verify_mugraph(step.unit.program, graph_of(step)).seed != first.seed


def test_a_runtime_that_was_edited(tmp_path: Path) -> None:
    applied(tmp_path)
    [runtime] = tmp_path.glob("mugraph_runtime_*.py")
    edited(runtime, "is_neg()", "is_inference()")
    [problem] = problems(tmp_path)
    assert problem.startswith(f"{runtime.name} was edited since it was written")
    runtime.unlink()
    [problem] = problems(tmp_path)
    assert "cannot be read" in problem
