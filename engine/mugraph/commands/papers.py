"""The papers' programs, as the samples write them, and the μGraphs the papers found for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mugraph.commands.forms import Form

_SUMS = "accum[h](sum[h](mul(x, x)))"
_ROOT = "sqrt(~sum[h](mul(x, x)))"
_RMSNORM = (
    Form("RMSNorm and MatMul in one kernel (Mirage, Figure 3b)", f"div(accum[h](dot[h](_, _)), sqrt(~{_SUMS}))"),
    Form(
        "RMSNorm and MatMul, split across the grid",
        "div(sum[s](a), sqrt(~sum[s](b)))",
        {"a": "accum[p](dot[p](_, _))", "b": "accum[p](sum[p](mul(x, x)))"},
    ),
    Form(
        "RMSNorm and MatMul as two kernels",
        "accum[h](dot[h](a, w)) | dot[h](a, w)",
        {"a": f"mul(div(x, {_ROOT}), g) | div(mul(x, g), {_ROOT}) | mul(x, div(g, {_ROOT})) | div(x, {_ROOT})"},
    ),
)
_FLASH = "div(accum[n](dot[n](exp(s), v)), accum[n](sum[n](exp(s))))"
_PARTS = {"a": "accum[p](dot[p](exp(s), v))", "b": "accum[p](sum[p](exp(s)))"}
_PRODUCT = "~dot[d](q, k)"
_ATTENTION = (
    Form("FlashAttention's form", _FLASH.replace("exp(s)", f"exp({_PRODUCT})")),
    Form(
        "FlashDecoding's form (Mirage v1, Figure 4b)",
        "div(sum[s](a), sum[s](b))",
        {name: part.replace("exp(s)", f"exp({_PRODUCT})") for name, part in _PARTS.items()},
    ),
)
_GROUPED = (
    *_ATTENTION,
    replace(
        _ATTENTION[1],
        name="the heads of a group in the rows of one block's products (Mirage v1, Figure 4c)",
        packed="q",
    ),
)
_QKNORM = (
    Form("QKNorm and attention in one kernel (Mirage, Figure 8b)", _FLASH, roots={"s": 2}),
    Form("QKNorm and attention, split across the grid", "div(sum[s](a), sum[s](b))", _PARTS, {"s": 2}),
)
_GATED = "mul(accum[h](dot[h](x, w)), silu(accum[h](dot[h](x, u))))"
# Figure 9b has an operator f(w, x, y, z) = (w || x) @ (y over z), which §7 says is w @ y + x @ z. Here it is that sum.
_CONCAT = "accum[h](add(dot[h](x, w), dot[r](dot[h](x, a), b)))"
_LORA = "add(accum[h](dot[h](x, w)), dot[r](accum[h](dot[h](x, a)), b))"
_MLP = Form(
    "MLP: part of the first product's sum in the first kernel, the rest in the second (Mirage v1, Figure 10b)",
    "add(dot[r](relu(sum[s](a)), b), _)",
    {"a": "accum[p](dot[p](x, w))"},
)
_CHAIN = (
    Form("tiling expression nk (MCFuser, Figure 6a)", "accum[n](dot[n](accum[k](dot[k](a, b)), d))"),
    Form("tiling expression nk with k of extent 1 (MCFuser, Figure 4b)", "accum[n](dot[n](dot[k](a, b), d))"),
)


@dataclass(frozen=True)
class Paper:
    """A program of the papers. file: of the samples, without ".py". function: in it"""

    file: str
    function: str
    forms: tuple[Form, ...] = ()


PROGRAMS: dict[str, Paper] = {
    "RMSNorm": Paper("rmsnorm_linear", "RMSNormLinear.forward", _RMSNORM),
    "GatedMLP": Paper(
        "gated_mlp", "gated_mlp", (Form("GatedMLP in one kernel, one loop (Mirage, Figure 10b)", _GATED),)
    ),
    "LoRA": Paper(
        "lora",
        "lora",
        (
            Form("LoRA in one kernel, one loop, products added after it", _LORA),
            Form(
                "LoRA in one kernel, concat-matmul as one accumulator of two products (Mirage v1, Figure 9b)", _CONCAT
            ),
        ),
    ),
    "nTrans": Paper("norm_transformer", "norm_transformer", (Form("nTrans in one kernel", "div(_, sqrt(_))"),)),
    "GQA": Paper("gqa_attention", "gqa_attention_expanded", _GROUPED),
    "QKNorm": Paper("qknorm_attention", "qknorm_attention", _QKNORM),
    "MHA": Paper("mha", "mha", _ATTENTION),
    "MQA": Paper("mqa", "Model.forward", _ATTENTION),
    "MLP": Paper("mlp_adapter", "Model.forward", (_MLP,)),
    "MoE": Paper("moe", "moe"),
    **{f"G{i}": Paper("gemm_chain", f"g{i}", _CHAIN) for i in range(1, 13)},
    **{f"S{i}": Paper("self_attention", f"s{i}", _ATTENTION) for i in range(1, 10)},
}
