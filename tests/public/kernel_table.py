"""Kernels of public projects, each with its launcher and what it computes, in PyTorch.

The launcher is the project's own function, called as its users do; where it is part of a class with more in it than can
be taken out, it is written here as that class launches the kernel. Kernels that write into their inputs get copies.
"""

# ruff: noqa: E501 - text of launchers and references

from __future__ import annotations

from dataclasses import dataclass

from tests.public.kernel_bundle import Stubs


@dataclass(frozen=True)
class Entry:
    """file: of the project, that has what the launcher names. reference: with its shapes above it"""

    name: str
    project: str
    file: str
    launcher: str
    reference: str


_GUARD = "def {}(device):\n    return torch.no_grad()"
PROJECTS = {
    "Liger-Kernel": Stubs(
        {"liger_kernel": "src/liger_kernel"},
        {
            "device_context": _GUARD.format("device_context"),
            "infer_device_arch": "def infer_device_arch():\n    return 'hopper'",
            "infer_device": "def infer_device():\n    return 'cuda'",
            "set_large_grf_mode": "def set_large_grf_mode(kernel_args):\n    pass",
            "rsqrt": "from triton.language.extra.libdevice import rsqrt",
            "tanh": "from triton.language.extra.libdevice import tanh",
        },
        frozenset({"ensure_contiguous"}),
    ),
    "unsloth": Stubs(
        {"unsloth": "unsloth"},
        {
            "torch_gpu_device": _GUARD.format("torch_gpu_device"),
            "triton_tanh": "from triton.language.extra import libdevice\ntriton_tanh = libdevice.tanh",
            "MAX_FUSED_SIZE": "MAX_FUSED_SIZE = 65536",
            "next_power_of_2": "next_power_of_2 = triton.next_power_of_2",
        },
    ),
    "fla": Stubs(
        {"fla": "fla"},
        {
            "IS_AMD": "IS_AMD = False",
            "IS_NVIDIA_HOPPER": "IS_NVIDIA_HOPPER = False",
            "IS_NVIDIA_BLACKWELL": "IS_NVIDIA_BLACKWELL = False",
            "BS_LIST": "BS_LIST = [32, 64]",
            "BT_LIST": "BT_LIST = [8, 16, 32, 64, 128]",
        },
        frozenset({"dispatch", "input_guard", "autocast_custom_fwd", "autocast_custom_bwd"}),
        frozenset({"fla_cache_autotune"}),
    ),
    "FlagGems": Stubs(
        {"flag_gems": "src/flag_gems"},
        {
            "rsqrt": "from triton.language.extra.libdevice import rsqrt",
            "runtime": "",
            "INT32_MAX": "INT32_MAX = 2**31 - 1",
            "get_dtype_min": "@triton.jit\ndef get_dtype_min(dtype):\n    return float('-inf')",
            "get_dtype_max": "@triton.jit\ndef get_dtype_max(dtype):\n    return float('inf')",
        },
        frozenset({"libentry"}),
        frozenset({"libtuner"}),
        {
            r"\btle\.": "tl.",
            r"torch_device_fn\.device\([\w.]+\)": "torch.no_grad()",
            r"(?m)^\s*logger\.debug\((?:[^()]|\([^()]*\))*\)\n": "",
            r"runtime\.get_tuned_config\('mv'\)": "[triton.Config({'BLOCK_N': 32, 'BLOCK_M': 64})]",
            r"runtime\.get_tuned_config\('naive_reduction'\)": "[triton.Config({'BLOCK_M': 4, 'BLOCK_N': 1024}), triton.Config({'BLOCK_M': 8, 'BLOCK_N': 32})]",
            r"runtime\.get_tuned_config\('vector_norm'\)": "[triton.Config({'BLOCK_M': 4, 'BLOCK_N': 1024}), triton.Config({'BLOCK_M': 8, 'BLOCK_N': 32})]",
            r"runtime\.get_tuned_config\('layer_norm_persistent'\)": "[triton.Config({}, num_warps=4)]",
            r"runtime\.get_tuned_config\('(?:mm)'\)": "[triton.Config({'BLOCK_M': 32, 'BLOCK_N': 32, 'BLOCK_K': 32}), triton.Config({'BLOCK_M': 64, 'BLOCK_N': 32, 'BLOCK_K': 16})]",
            r"runtime\.get_tuned_config\('addmm'\)": "[triton.Config({'BLOCK_SIZE_M': 32, 'BLOCK_SIZE_N': 32, 'BLOCK_SIZE_K': 32})]",
            r"runtime\.get_tuned_config\('bmm'\)": "[triton.Config({'TILE_M': 32, 'TILE_N': 32, 'TILE_K': 32, 'GROUP_M': 2}), triton.Config({'TILE_M': 16, 'TILE_N': 64, 'TILE_K': 16, 'GROUP_M': 1})]",
            r"runtime\.get_heuristic_config\('bmm'\)": "{'DIVISIBLE_M': lambda args: args['M'] % args['TILE_M'] == 0, 'DIVISIBLE_N': lambda args: args['N'] % args['TILE_N'] == 0, 'DIVISIBLE_K': lambda args: args['K'] % args['TILE_K'] == 0}",
            r"runtime\.get_heuristic_config\('softmax_inner'\)": "{'TILE_N': lambda args: triton.next_power_of_2(args['N']) if args['N'] <= 128 else 64, 'ONE_TILE_PER_CTA': lambda args: args['TILE_N'] >= args['N']}",
            r"runtime\.get_heuristic_config\('softmax_non_inner'\)": "{'TILE_K': lambda args: 16, 'TILE_N': lambda args: 64, 'ONE_TILE_PER_CTA': lambda args: args['TILE_N'] >= args['N']}",
            r"runtime\.get_tuned_config\('weight_norm_kernel_(?:last|first)'\)": "[triton.Config({'BLOCK_ROW_SIZE': 8, 'BLOCK_COL_SIZE': 64})]",
            r"runtime\.get_tuned_config\('triu_batch'\)": "[triton.Config({'BATCH_BLOCK_SIZE': 1, 'MN_BLOCK_SIZE': 64})]",
            r"runtime\.get_tuned_config\('triu'\)": "[triton.Config({'M_BLOCK_SIZE': 8, 'N_BLOCK_SIZE': 32})]",
        },
    ),
}
"""What of a project is put in the place of something else: the device it is not run on, tables of tuned sizes."""

_LIGER, _FLA, _GEMS = "src/liger_kernel/ops/", "fla/", "src/flag_gems/ops/"


def _liger(name: str, file: str, launcher: str, reference: str) -> Entry:
    return Entry(f"liger_{name}", "Liger-Kernel", f"{_LIGER}{file}.py", launcher, reference)


def _unsloth(name: str, file: str, launcher: str, reference: str) -> Entry:
    return Entry(f"unsloth_{name}", "unsloth", f"unsloth/kernels/{file}.py", launcher, reference)


def _fla(name: str, file: str, launcher: str, reference: str) -> Entry:
    return Entry(f"fla_{name}", "fla", f"{_FLA}{file}.py", launcher, reference)


def _gems(name: str, file: str, launcher: str, reference: str) -> Entry:
    return Entry(f"gems_{name}", "FlagGems", f"{_GEMS}{file}.py", launcher, reference)


_SILU_BACK = "    s = torch.sigmoid(a)\n    return dc * (a * s * (1 - s) + s) * b, dc * a * s\n"
_RMS = "    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w\n"
_LN = "    return F.layer_norm(x, (100,), w, b, 1e-5)\n"
_XW = "# mugraph: x=f32[6, 100], w=f32[100]\ndef reference(x, w):\n"
_XWB = "# mugraph: x=f32[6, 100], w=f32[100], b=f32[100]\ndef reference(x, w, b):\n"
_X = "# mugraph: x=f32[6, 100]\ndef reference(x):\n"
_XY = "# mugraph: x=f32[6, 100], y=f32[6, 100]\ndef reference(x, y):\n"
_ABC = "# mugraph: a=f32[6, 100], b=f32[6, 100], dc=f32[6, 100]\ndef reference(a, b, dc):\n"
_MM = "# mugraph: x=f32[40, 72], y=f32[72, 50]\ndef reference(x, y):\n    return x @ y\n"

KERNELS = (
    _liger("rms_norm", "rms_norm", "def launch(x, w):\n    return rms_norm_forward(x, w, 1e-6, 0.0, 'llama', None)[0]\n", _XW + _RMS),
    _liger("rms_norm_gemma", "rms_norm", "def launch(x, w):\n    return rms_norm_forward(x, w, 1e-6, 1.0, 'gemma', None)[0]\n", _XW + _RMS.replace("* w", "* (1 + w)")),
    _liger("layer_norm", "layer_norm", "def launch(x, w, b):\n    return layer_norm_forward(x, w, b, 1e-5)[0]\n", _XWB + _LN),
    _liger("group_norm", "group_norm", "def launch(x, w, b):\n    return group_norm_forward(x, 8, 4, w, b, 1e-5)[0]\n",
           "# mugraph: x=f32[3, 8, 25], w=f32[8], b=f32[8]\ndef reference(x, w, b):\n    return F.group_norm(x, 4, w, b, 1e-5)\n"),
    _liger("swiglu", "swiglu", "def launch(a, b):\n    return swiglu_forward(a, b)[2]\n", "# mugraph: a=f32[6, 100], b=f32[6, 100]\ndef reference(a, b):\n    return F.silu(a) * b\n"),
    _liger("swiglu_scaled", "swiglu", "def launch(a, b):\n    return swiglu_forward(a, b, 0.5)[2]\n", "# mugraph: a=f32[6, 100], b=f32[6, 100]\ndef reference(a, b):\n    return F.silu(a * 0.5) * b\n"),
    _liger("swiglu_backward", "swiglu", "def launch(a, b, dc):\n    return swiglu_backward(a.clone(), b.clone(), dc)\n", _ABC + _SILU_BACK),
    _liger("geglu", "geglu", "def launch(a, b):\n    return geglu_forward(a, b)[2]\n", "# mugraph: a=f32[6, 100], b=f32[6, 100]\ndef reference(a, b):\n    return F.gelu(a, approximate='tanh') * b\n"),
    _liger("softmax", "softmax", "def launch(x):\n    return _softmax_forward(x)[0]\n", _X + "    return x.softmax(-1)\n"),
    _liger("softmax_blocks", "softmax", "def launch(x):\n    y = torch.empty_like(x)\n    _softmax_multi_block_forward_kernel[(x.shape[0],)](y, y.stride(0), x, x.stride(0), x.shape[1], BLOCK_SIZE=32)\n    return y\n", _X + "    return x.softmax(-1)\n"),
    _liger("softmax_backward", "softmax", "def launch(x, y):\n    return _softmax_backward(x, y, 128, 4, False)\n", _XY + "    return y * (x - (x * y).sum(-1, keepdim=True))\n"),
    _liger("softmax_backward_blocks", "softmax", "def launch(x, y):\n    return _softmax_backward(x, y, 32, 4, True)\n", _XY + "    return y * (x - (x * y).sum(-1, keepdim=True))\n"),
    _liger("relu_squared", "relu_squared", "def launch(x):\n    return relu_squared_forward(x)\n", _X + "    return F.relu(x) * F.relu(x)\n"),
    _liger("relu_squared_backward", "relu_squared", "def launch(x, y):\n    return relu_squared_backward(x, y)\n", _XY + "    return 2 * F.relu(x) * y\n"),
    _liger("dyt", "dyt", "def launch(x, alpha, gamma, beta):\n    return liger_dyt_fwd(x, alpha, gamma, beta)\n",
           "# mugraph: x=f32[6, 100], alpha=f32[1], gamma=f32[100], beta=f32[100]\ndef reference(x, alpha, gamma, beta):\n    return torch.tanh(alpha * x) * gamma + beta\n"),
    _liger("fused_add_rms_norm", "fused_add_rms_norm", "def launch(x, r, w):\n    return fused_add_rms_norm_forward(x, r, w, 1e-6, 0.0, 'llama')[:2]\n",
           "# mugraph: x=f32[6, 100], r=f32[6, 100], w=f32[100]\ndef reference(x, r, w):\n    s = x + r\n    return s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-6) * w, s\n"),
    _liger("poly_norm", "poly_norm", "def launch(x, w, b):\n    return poly_norm_forward(x, w, b)[0]\n",
           "def norm(x):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n\n\n# mugraph: x=f32[6, 100], w=f32[3], b=f32[1]\ndef reference(x, w, b):\n    return w[0] * norm(x * x * x) + w[1] * norm(x * x) + w[2] * norm(x) + b\n"),
    _liger("modulated_rms_norm", "modulated_rms_norm", "def launch(x, w, scale, shift):\n    return modulated_rms_norm_forward(x, w, scale, shift, 1e-6, 0.0, 'llama')[0]\n",
           "# mugraph: x=f32[6, 100], w=f32[100], scale=f32[6, 100], shift=f32[6, 100]\ndef reference(x, w, scale, shift):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w * (1 + scale) + shift\n"),
    _liger("kl_div_backward", "kl_div", "def launch(x):\n    y = torch.empty_like(x)\n    _kldiv_kernel_backward[(x.shape[0],)](x, x.stride(0), y, y.stride(0), x.shape[1], BLOCK_SIZE=32, log_target=True)\n    return y\n", _X + "    return -torch.exp(x)\n"),
    _liger("element_mul", "utils", "def launch(x, y):\n    out = x.clone()\n    element_mul_kernel[(x.shape[0],)](out, out.stride(0), y, out.shape[1], BLOCK_SIZE=32)\n    return out\n",
           "# mugraph: x=f32[6, 100], y=f32[1]\ndef reference(x, y):\n    return x * y\n"),
    _unsloth("swiglu", "swiglu", "def launch(e, g):\n    return swiglu_fg_kernel(e, g)\n", "# mugraph: e=f32[3, 5, 100], g=f32[3, 5, 100]\ndef reference(e, g):\n    return F.silu(e) * g\n"),
    _unsloth("swiglu_backward", "swiglu", "def launch(dw, e, g):\n    return swiglu_DWf_DW_dfg_kernel(dw.clone(), e.clone(), g.clone())\n",
             "# mugraph: dw=f32[6, 300], e=f32[6, 300], g=f32[6, 300]\ndef reference(dw, e, g):\n    s = torch.sigmoid(e)\n    return s * e * g, dw * s * e, dw * g * s * (1 + e * (1 - s))\n"),
    _unsloth("geglu_exact", "geglu", "def launch(gate, up):\n    return geglu_exact_forward_kernel(gate, up)\n", "# mugraph: gate=f32[3, 5, 100], up=f32[3, 5, 100]\ndef reference(gate, up):\n    return F.gelu(gate) * up\n"),
    _unsloth("geglu_approximate", "geglu", "def launch(gate, up):\n    return geglu_approx_forward_kernel(gate, up)\n", "# mugraph: gate=f32[3, 5, 100], up=f32[3, 5, 100]\ndef reference(gate, up):\n    return F.gelu(gate, approximate='tanh') * up\n"),
    _unsloth("rms_norm", "rms_layernorm", "def launch(x, w):\n    return Fast_RMS_Layernorm.apply(x, w, 1e-6, False)\n", _XW + _RMS),
    _unsloth("rms_norm_gemma", "rms_layernorm", "def launch(x, w):\n    return Fast_RMS_Layernorm.apply(x, w, 1e-6, True)\n", _XW + _RMS.replace("* w", "* (w + 1)")),
    _unsloth("layer_norm", "layernorm", "def launch(x, w, b):\n    return Fast_Layernorm.apply(x, w, b, 1e-5)\n", _XWB + _LN),
    _fla("sigmoid", "modules/activations", "def launch(x):\n    return sigmoid_fwd(x)\n", _X + "    return torch.sigmoid(x)\n"),
    _fla("sigmoid_backward", "modules/activations", "def launch(x, y):\n    return sigmoid_bwd(x, y)\n", _XY + "    return y * torch.sigmoid(x) * (1 - torch.sigmoid(x))\n"),
    _fla("swish", "modules/activations", "def launch(x):\n    return swish_fwd(x)\n", _X + "    return F.silu(x)\n"),
    _fla("swish_backward", "modules/activations", "def launch(x, y):\n    return swish_bwd(x, y)\n", _XY + "    s = torch.sigmoid(x)\n    return y * s * (1 + x * (1 - s))\n"),
    _fla("swiglu", "modules/activations", "def launch(x, y):\n    return swiglu_fwd(x, y)\n", _XY + "    return F.silu(x) * y\n"),
    _fla("swiglu_both", "modules/activations", "def launch(a, b, dc):\n    return swiglu_fwdbwd(a, b, dc)[:2]\n", _ABC + _SILU_BACK),
    _fla("sigmoidglu", "modules/activations", "def launch(x, y):\n    return sigmoidglu_fwd(x, y)\n", _XY + "    return torch.sigmoid(x) * y\n"),
    _fla("logsigmoid", "modules/activations", "def launch(x):\n    return logsigmoid_fwd(x)\n", _X + "    return F.logsigmoid(x)\n"),
    _fla("l2norm", "modules/l2norm", "def launch(x):\n    return l2norm_fwd(x)[0]\n", _X + "    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)\n"),
    _fla("l2norm_long", "modules/l2norm", "def launch(x):\n    return l2norm_fwd(x)[0]\n", "# mugraph: x=f32[4, 600]\ndef reference(x):\n    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)\n"),
    _fla("layer_norm", "modules/layernorm", "def launch(x, w, b):\n    return layer_norm_fwd(x, w, b)[0]\n", _XWB + _LN),
    _fla("rms_norm_residual", "modules/layernorm", "def launch(x, r, w):\n    y, mean, rstd, out = layer_norm_fwd(x, w, None, 1e-6, residual=r, is_rms_norm=True)\n    return y, out\n",
         "# mugraph: x=f32[6, 100], r=f32[6, 100], w=f32[100]\ndef reference(x, r, w):\n    s = x + r\n    return s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-6) * w, s\n"),
    _fla("softmax", "ops/utils/softmax", "def launch(x):\n    return softmax_fwd(x)\n", _X + "    return x.softmax(-1)\n"),
    _fla("softmax_backward", "ops/utils/softmax", "def launch(x, y):\n    return softmax_bwd(x, y)\n", _XY + "    return x * y - x * (x * y).sum(-1, keepdim=True)\n"),
    _fla("matmul", "ops/utils/matmul", "def launch(x, y):\n    return matmul(x, y)\n", _MM),
    _fla("matmul_relu", "ops/utils/matmul", "def launch(x, y):\n    return matmul(x, y, 'relu')\n", _MM.replace("x @ y", "F.relu(x @ y)")),
    _fla("matmul_sigmoid", "ops/utils/matmul", "def launch(x, y):\n    return matmul(x, y, 'sigmoid')\n", _MM.replace("x @ y", "torch.sigmoid(x @ y)")),
    _gems("mv", "mv", "def launch(x, y):\n    return mv(x, y)\n", "# mugraph: x=f32[40, 100], y=f32[100]\ndef reference(x, y):\n    return x @ y\n"),
    _gems("mm", "mm", "def launch(x, y):\n    c = torch.empty((x.shape[0], y.shape[1]), device=x.device, dtype=x.dtype)\n    return general_mm(x, y, c, x.shape[0], y.shape[1], x.shape[1])\n", _MM),
    _gems("bmm", "bmm", "def launch(x, y):\n    return bmm(x, y)\n", "# mugraph: x=f32[3, 40, 64], y=f32[3, 64, 50]\ndef reference(x, y):\n    return x @ y\n"),
    _gems("addmm", "addmm", "def launch(b, x, y):\n    return addmm(b, x, y)\n", "# mugraph: b=f32[40, 50], x=f32[40, 72], y=f32[72, 50]\ndef reference(b, x, y):\n    return x @ y + b\n"),
    _gems("rms_norm", "rms_norm", "def launch(x, w):\n    return RmsNorm.apply(x, (100,), w, 1e-6)\n", _XW + _RMS),
    _gems("layer_norm", "layernorm", "def launch(x, w, b):\n    y = torch.empty_like(x)\n    mean = torch.empty((x.shape[0],), device=x.device)\n    rstd = torch.empty((x.shape[0],), device=x.device)\n    layer_norm_persistent_kernel[(x.shape[0],)](x, y, w, b, mean, rstd, x.shape[0], x.shape[1], 1e-5, TILE_N=128)\n    return y\n", _XWB + _LN),
    _gems("softmax", "softmax", "def launch(x):\n    y = torch.empty_like(x)\n    softmax_kernel_inner[(x.shape[0], 1, 1)](y, x, x.shape[0], x.shape[1])\n    return y\n", _X + "    return x.softmax(-1)\n"),
    _gems("softmax_looped", "softmax", "def launch(x):\n    y = torch.empty_like(x)\n    softmax_kernel_inner[(x.shape[0], 1, 1)](y, x, x.shape[0], x.shape[1])\n    return y\n", "# mugraph: x=f32[4, 200]\ndef reference(x):\n    return x.softmax(-1)\n"),
    _gems("softmax_columns", "softmax", "def launch(x):\n    y = torch.empty_like(x)\n    m, n, k = x.shape\n    softmax_kernel_non_inner[lambda meta: (m, triton.cdiv(k, meta['TILE_K']), 1)](y, x, m, n, k)\n    return y\n", "# mugraph: x=f32[4, 30, 20]\ndef reference(x):\n    return x.softmax(1)\n"),
    _gems("vector_norm", "vector_norm", "def launch(x):\n    out = torch.empty((x.shape[0],), device=x.device)\n    l2_norm_kernel[lambda meta: (triton.cdiv(x.shape[0], meta['BLOCK_M']),)](x, out, x.shape[0], x.shape[1])\n    return out\n", _X + "    return x.pow(2).sum(-1).sqrt()\n"),
    _gems("mean", "mean", "def launch(x):\n    out = torch.empty((x.shape[0],), device=x.device)\n    mean_dim_kernel[lambda meta: (triton.cdiv(x.shape[0], meta['BLOCK_M']),)](x, out, x.shape[0], x.shape[1])\n    return out\n", _X + "    return x.mean(-1)\n"),
    _gems("amax", "amax", "def launch(x):\n    out = torch.empty((x.shape[0],), device=x.device)\n    amax_kernel[lambda meta: (triton.cdiv(x.shape[0], meta['BLOCK_M']),)](x, out, x.shape[0], x.shape[1])\n    return out\n", _X + "    return x.amax(-1)\n"),
    _gems("group_norm", "groupnorm", "def launch(x, w, b):\n    n, c, hw = x.shape\n    y = torch.empty_like(x)\n    mean = torch.empty((n, 4), device=x.device)\n    rstd = torch.empty((n, 4), device=x.device)\n    group_norm_kernel[(n * 4,)](x, y, w, b, mean, rstd, c // 4, c, hw, 4, 1e-5, BLOCK_GROUP_SIZE=triton.next_power_of_2(c // 4), BLOCK_HW_SIZE=triton.next_power_of_2(hw))\n    return y\n",
          "# mugraph: x=f32[3, 8, 25], w=f32[8], b=f32[8]\ndef reference(x, w, b):\n    return F.group_norm(x, 4, w, b, 1e-5)\n"),
    _gems("weight_norm", "weightnorm", "def launch(v, g):\n    out = torch.empty_like(v)\n    norm = torch.empty_like(g)\n    weight_norm_kernel_first[(lambda meta: (triton.cdiv(v.shape[0], meta['BLOCK_ROW_SIZE']),))](out, norm, v, g, v.shape[0], v.shape[1], 1e-6)\n    return out\n",
          "# mugraph: v=f32[20, 100], g=f32[20, 1]\ndef reference(v, g):\n    return v / (v.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt() * g\n"),
    _gems("triu", "triu", "def launch(x):\n    return triu(x)\n", "# mugraph: x=f32[20, 50]\ndef reference(x):\n    return x.masked_fill(torch.ones(20, 50, dtype=torch.bool).tril(-1), 0.0)\n"),
)  # fmt: skip
