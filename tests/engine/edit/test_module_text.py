"""What the kernel module says, and what it refuses to hold."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.edit.apply import apply_files
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import Speed, module_text
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import TensorInfo
from mugraph.targets import TARGETS

PATH = Path("model.py")


@pytest.fixture
def plan(maker, source, part):
    return maker.plan(source, part)


def test_the_evidence_is_told_as_it_is(maker, plan):
    speed = {"gated": Speed(1.239, "measured", "NVIDIA H200")}
    text = module_text([plan], maker.kernels, original_path=PATH, target=TARGETS["sm_80"], speeds=speed)
    told = " ".join(text.replace("#", " ").split())
    assert "replaces Gated.forward, lines 20-22" in told
    assert "over the fields of 1940566319 and 970283159 in 4 random repetitions at sizes m=2 n=3; m=3 n=2;" in told
    assert "a wrong graph passes with probability at most 3.0e-10" in told
    assert "largest relative error 4.0e-07 (PyTorch: 3.0e-07) against float64, on Triton's interpreter" in told
    assert "speed 1.24x, measured (NVIDIA H200)" in told
    assert "_SOURCE, _CAPABILITY = 'model.py', (8, 0)" in told


def test_what_was_not_earned_is_not_claimed(maker, plan):
    plain, step = plan.steps
    verdict = replace(step.verdict, bound=None, bound_note="sqrt is outside the theorem", max_rel_error=None)
    text = module_text(
        [replace(plan, steps=(plain, replace(step, verdict=verdict)))], maker.kernels, original_path=PATH
    )
    told = " ".join(text.replace("#", " ").split())
    assert "no bound on accepting a wrong graph (sqrt is outside the theorem)" in told
    assert "error not tested in floating point" in told
    assert "speed not measured" in told
    assert "probability" not in told


def test_it_imports_nothing_but_torch_triton_and_the_standard_library(maker, plan):
    tree = ast.parse(module_text([plan], maker.kernels, original_path=PATH))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} - sys.stdlib_module_names == {"torch", "triton"}


def test_a_kernel_two_regions_share_is_written_once(maker, plan):
    text = module_text([plan, replace(plan, name="second")], maker.kernels, original_path=PATH)
    assert text.count("def launch_gate(") == 1
    assert text.count("_gate(_laid_out(xw") == 2


def test_a_kernel_with_the_regions_name(gated_file, maker, source, part, load, on_this_machine):
    done = apply_files(gated_file, [maker.plan(source, part, name="gate")], maker.kernels)
    assert "def gate_kernel(product_ptr" in done.module_text
    assert "gate_kernel[(4, 1, 1)]" in done.module_text
    loaded = load(gated_file)
    assert loaded.kernels.gate.__code__.co_varnames == ("self", "x")


def test_names_that_mean_something_else_are_avoided(maker, source, part):
    plan = maker.plan(source, part, live_ins=("torch", "self.gate", "_gate"))
    text = module_text([plan], maker.kernels, original_path=PATH)
    assert "def gated(self: Any, torch_2: torch.Tensor, gate_2: torch.Tensor) -> torch.Tensor:" in text
    assert "return (_gated_on_tensors if _dynamo() else _gated_run)(torch_2, self.gate, gate_2)\n" in text
    assert "def _gated_on_tensors(torch_2: torch.Tensor, gate_2: torch.Tensor, gate_3: torch.Tensor)" in text


def test_what_is_read_by_plain_names_needs_no_second_function_for_one_step(maker, source, part):
    plan = maker.plan(source, part, live_ins=("x", "w", "u"))
    text = module_text([plan], maker.kernels, original_path=PATH)
    assert "def gated(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:" in text
    assert "return (_gated_on_tensors if _dynamo() else _gated_run)(x, w, u)\n" in text
    assert on_tensors(plan) == "_gated_on_tensors"
    assert on_tensors(replace(plan, steps=plan.steps[:1])) == "gated"


def test_conditions_are_joined_as_they_are_meant(maker, source, part):
    guards = ("_is(self.a, 'A')", "self.b or len(torch) == 2", "self.a.n == 3")
    text = module_text([maker.plan(source, part, guards=guards)], maker.kernels, original_path=PATH)
    fits = next(
        node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "_gated_fits"
    )
    assert [argument.arg for argument in fits.args.args] == ["self", "x", "torch_2"]
    (tried,) = fits.body
    known, refused, differs = [line for line in tried.body if isinstance(line, ast.If)]
    asked = "_gated_differs(self, x, torch_2) and (not _gated_others(self, x, torch_2))"
    assert ast.unparse(differs.test) == f"not _dynamo() and {asked}"
    assert ast.unparse(refused.test) == "not _dynamo() and _gated_refused(self, x, torch_2)"
    assert ast.unparse(known.test) == "not _dynamo() and _gated_known(self, x, torch_2)"
    assert "(self.b or len(torch_2) == 2)" in ast.unparse(known.body[-1])
    tried.body = tried.body[3:]
    bound = ["a = self.a", "a_own = a.__dict__"]  # what two conditions read is read once
    assert [ast.unparse(line) for line in tried.body[:-1]] == bound
    holds, refuse = tried.body[-1].value.values
    assert ast.unparse(refuse) == "_learn_no('gated', _gated_others, self, x, torch_2)"
    assert [ast.unparse(value) for value in holds.values] == [
        "_same_code('gated', type(a))",
        "not (a_own['_forward_hooks'] or a_own['_forward_pre_hooks'])",
        "not (a_own['_backward_hooks'] or a_own['_backward_pre_hooks'])",
        "not ('_call_impl' in a_own or '_compiled_call_impl' in a_own)",
        "self.b or len(torch_2) == 2",
        "type(a.n) is int",
        "a.n == 3",
        "_gated_tensors_fit(x, self.w, self.u)",
        "_learn('gated', self, x, torch_2)",
    ]
    assert "_REGIONS = {\n    'gated': ('A',),\n}" in text


def test_a_result_gets_the_strides_the_program_had(maker, plan):
    region = plan.region
    turned = replace(region, values={**region.values, 5: TensorInfo((4, 16), (1, 4), "f16")})
    text = module_text([replace(plan, region=turned)], maker.kernels, original_path=PATH)
    assert "    y = y.to(torch.float16)\n    return _laid_out(y, (1, 4))\n" in text


def test_a_result_that_is_written_as_it_lies_is_not_copied(maker, plan):
    plain, step = plan.steps
    region = replace(plan.region, values={**plan.region.values, 5: TensorInfo((16, 4), (1, 16), "f16")})
    laid = replace(step, unit=replace(step.unit, laid={5: (1, 0)}))
    text = module_text([replace(plan, region=region, steps=(plain, laid))], maker.kernels, original_path=PATH)
    assert "    y = y.to(torch.float16)\n    return y.permute(1, 0)\n" in text


def test_a_dimension_of_size_one_has_no_stride_to_compare(maker, plan):
    region = plan.region
    thin = replace(region, values={**region.values, 0: TensorInfo((1, 8), (99, 1), "f32")})
    text = module_text([replace(plan, region=thin)], maker.kernels, original_path=PATH)
    assert " and x.shape == (1, 8) and x.stride(1) == 1\n" in text
    assert "99" not in text.split("def _gated_tensors_fit")[1].split("_CASES")[0]


def test_what_does_not_fit_together_is_rejected(maker, plan):
    plain, step = plan.steps
    region = plan.region
    other = replace(region, values={**region.values, 2: TensorInfo((4, 16), (1, 4), "f32")})
    strange = replace(region, values={**region.values, 0: TensorInfo((4, 8), (8, 1), "q8")})
    for wrong, sentence in (
        (replace(plan, steps=(step,)), "which no earlier step of gated computes"),
        (replace(plan, steps=(plain,)), "no step of gated computes y"),
        (replace(plan, region=other), "by other strides"),
        (replace(plan, region=strange), "type q8"),
        (replace(plan, name="_laid_out"), "the name _laid_out for two things"),
        (replace(plan, name="no name"), "cannot be a function's name"),
    ):
        with pytest.raises(Rejected, match=sentence):
            module_text([wrong], maker.kernels, original_path=PATH)
    with pytest.raises(Rejected, match="no source for kernel gate"):
        module_text([plan], {}, original_path=PATH)
    with pytest.raises(Rejected, match="two regions have the same name"):
        module_text([plan, plan], maker.kernels, original_path=PATH)


def test_what_did_not_begin_at_a_whole_word_may_begin_anywhere(maker, plan):
    values = {**plan.region.values, 0: replace(plan.region.values[0], skew=3)}
    text = module_text([replace(plan, region=replace(plan.region, values=values))], maker.kernels, original_path=PATH)
    told = " ".join(text.split())
    assert "_runs_here(w, u, anywhere=(x,))" in told
    assert '_fit_from_now("gated", x, w, u, anywhere=(0,))' in told
    assert "((4, 8), (8, 1), torch.float32, 0.35, 3)," in told
    assert "anywhere" not in module_text([plan], maker.kernels, original_path=PATH)
