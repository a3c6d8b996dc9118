"""Names of PyTorch callables, and which of them are pure: their result is a function of their arguments alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import cast

import torch

from mugraph.kinds import Kind
from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.pytorch.words import words

# Where a name is looked for, best first: what is printed in generated code.
_NAMESPACES = (
    ("torch", torch),
    ("torch.nn.functional", torch.nn.functional),
    ("torch.special", torch.special),
    ("torch.linalg", torch.linalg),
    ("torch.fft", torch.fft),
)

# Pure as functions of torch, torch.nn.functional and torch.special and as methods, by the same names.
_ELEMENTWISE = {name for kind in Kind if kind.opaque for name in kind.opaque.names} | words(
    """
    abs absolute acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or
    bitwise_xor bitwise_left_shift bitwise_right_shift ceil clamp clamp_max clamp_min clip copysign cos cosh deg2rad
    digamma div divide eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fmax fmin fmod frac ge gcd
    greater greater_equal gt heaviside hypot isclose isfinite isinf isnan ldexp le lerp less less_equal lgamma log log10
    log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt maximum minimum mul multiply
    nan_to_num ne neg negative nextafter not_equal polygamma positive pow rad2deg reciprocal remainder round rsqrt rsub
    sgn sigmoid sign signbit sin sinc sinh sqrt square sub subtract tan tanh true_divide trunc where xlogy
    expit ndtr i0 i0e i1 i1e entr
    relu relu6 elu selu celu leaky_relu prelu gelu silu mish softplus softsign softshrink hardshrink hardtanh
    hardsigmoid hardswish tanhshrink logsigmoid threshold glu softmin softmax log_softmax normalize
    __rsub__ __rdiv__ __rtruediv__ __rpow__ __rfloordiv__ __rmod__ __rmatmul__ __and__ __or__ __xor__ __invert__
    __rshift__ __rand__ __ror__ __rxor__ __pos__ __neg__ __abs__ __add__ __radd__ __sub__ __mul__ __rmul__ __truediv__
    __pow__ __matmul__ __floordiv__ __mod__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__
    """
)

# Reductions, products, views and layouts, normalisation, convolution and pooling, indexing, and constants.
_PURE = _ELEMENTWISE | words(
    """
    all amax amin aminmax any argmax argmin argsort count_nonzero cumprod cumsum cummax cummin diff logcumsumexp
    logsumexp max mean median min nanmean nansum norm prod sort std std_mean sum topk var var_mean vector_norm
    matrix_norm
    addbmm addmm addmv addr baddbmm bilinear bmm chain_matmul cdist cosine_similarity cross dot einsum ger inner kron
    linear matmul mm multi_dot mv outer pairwise_distance scaled_dot_product_attention tensordot trace vdot vecdot
    multi_head_attention_forward _scaled_mm _scaled_mm_v2 _grouped_mm

    adjoint as_strided atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to cat chunk clone column_stack
    concat concatenate contiguous detach diag diag_embed diagonal dstack dsplit expand expand_as flatten flip fliplr
    flipud fold gather hsplit hstack index_add index_copy index_fill index_select masked_fill matrix_H
    meshgrid movedim moveaxis narrow one_hot pad permute pixel_shuffle pixel_unshuffle ravel repeat repeat_interleave
    reshape reshape_as roll rot90 row_stack scatter scatter_add select split split_with_sizes squeeze stack swapaxes
    swapdims t take take_along_dim tensor_split tile transpose tril triu unbind unflatten unfold unsqueeze view view_as
    vsplit vstack __getitem__ embedding bucketize searchsorted
    T H mT mH real imag data view_as_complex view_as_real polar complex conj angle

    bfloat16 bool double float half int long short to type type_as

    batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d avg_pool1d
    avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d lp_pool1d lp_pool2d conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d interpolate upsample grid_sample affine_grid channel_shuffle
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy hinge_embedding_loss
    huber_loss kl_div l1_loss margin_ranking_loss mse_loss nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss

    arange asarray eye full full_like linspace logspace ones ones_like scalar_tensor tensor tril_indices
    triu_indices zeros zeros_like new_full new_ones new_tensor new_zeros

    dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout
    """
)

# Pure only when not told to draw random numbers or to update running statistics: parameter's name and position.
_TRAINING_FLAG: Mapping[str, tuple[str, int]] = {
    "dropout": ("training", 2),
    "dropout1d": ("training", 2),
    "dropout2d": ("training", 2),
    "dropout3d": ("training", 2),
    "alpha_dropout": ("training", 2),
    "feature_alpha_dropout": ("training", 2),
    "batch_norm": ("training", 5),
}
_TRAINING_BY_DEFAULT = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d"})

_WRITING = words("__iadd__ __isub__ __imul__ __itruediv__ __ipow__ masked_fill")

REPEATABLE = frozenset({"Tensor.__setitem__", "Tensor.index_copy_", "Tensor.copy_"})
"""Calls that write to their first argument what does not depend on what it held: made twice, they leave the same."""

# What makes a region worth a search: products, reductions and running sums, by the last part of the target.
_MATTERS = words(
    """
    addbmm addmm addmv addr baddbmm bilinear bmm cdist chain_matmul dot einsum ger inner linear matmul mm multi_dot mv
    outer scaled_dot_product_attention tensordot vdot vecdot __matmul__ __rmatmul__ multi_head_attention_forward
    _scaled_mm _scaled_mm_v2 _grouped_mm
    amax amin logsumexp max mean min norm prod std sum var var_mean std_mean softmax log_softmax softmin normalize
    layer_norm group_norm instance_norm rms_norm batch_norm vector_norm cosine_similarity conv1d conv2d conv3d
    pairwise_distance mse_loss l1_loss smooth_l1_loss huber_loss kl_div triplet_margin_loss cosine_embedding_loss
    avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices
    max_pool3d_with_indices adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d hinge_embedding_loss binary_cross_entropy binary_cross_entropy_with_logits
    soft_margin_loss margin_ranking_loss cross_entropy cumsum
    """
)


@functools.cache
def _names() -> Mapping[int, str]:
    names: dict[int, str] = {}
    for prefix, namespace in _NAMESPACES:
        for name, value in vars(namespace).items():
            # `torch.spmm` is the same object as `torch.mm`: the name it calls itself by wins
            own = {name, f"{last_part(prefix)}_{name}"}  # as "linalg_vector_norm" calls itself
            if callable(value) and not name.startswith("__") and getattr(value, "__name__", name) in own:
                names.setdefault(id(value), f"{prefix}.{name}")
    # It calls itself log_sigmoid, a name that it has nowhere.
    names.setdefault(id(torch.nn.functional.logsigmoid), "torch.nn.functional.logsigmoid")
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name)
        own = getattr(value, "__name__", name)
        if callable(value) and (own == name or (name.startswith("__") and hasattr(torch.Tensor, own))):
            names[id(value)] = f"Tensor.{own}"  # `Tensor.__pow__` calls itself pow
    return names


def target_of(function: Callable[..., object]) -> str:
    """The name of a callable: "torch.mm", "torch.nn.functional.silu", "Tensor.view", "Tensor.T.__get__"."""
    name = attribute_of(function, "__name__") or type(function).__name__
    if name in ("__get__", "__set__", "__delete__"):
        attribute = getattr(attribute_of(function, "__self__"), "__name__", "?")
        return f"Tensor.{attribute}.{name}"
    known = _names().get(id(function))
    if known is not None:
        return known
    module = attribute_of(function, "__module__")
    return f"{module}.{attribute_of(function, '__qualname__') or name}" if module else str(name)


def last_part(target: str) -> str:
    """The name alone: "view" of "Tensor.view", "T" of "Tensor.T.__get__"."""
    parts = target.split(".")
    return parts[-2] if parts[-1] in ("__get__", "__set__") else parts[-1]


_PRIVATE = frozenset({"torch._scaled_mm", "torch._scaled_mm_v2", "torch._grouped_mm"})
"""Of PyTorch's own names for itself, those of functions that its public ones call with the arguments they are given, or
that programs call for want of a public one."""


def is_known(target: str) -> bool:
    is_own = target.startswith(("torch.ops.", "torch._")) and target not in _PRIVATE
    return target.startswith(("torch.", "Tensor.")) and not is_own


def functional_form(target: str) -> str | None:
    """The pure function that an in-place one writes the result of: "Tensor.add" of "Tensor.add_"."""
    name = last_part(target)
    if target.startswith(("Tensor.", "torch.")) and name.endswith("_") and not name.endswith("__"):
        pure = name[:-1]
        if pure in _PURE and (hasattr(torch.Tensor, pure) or hasattr(torch.nn.functional, pure)):
            return f"{target[: -len(name)]}{pure}"
    return None


KEEPS_TYPE = frozenset({"scatter", "scatter_add", "index_add", "index_copy", "index_fill", "masked_fill"})
"""Functions whose result has the first argument's type, whatever the others', as indices, have."""


def impurity(target: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str | None:
    """Why a call may not move; None if it is a known pure function with these arguments."""
    name = last_part(target)
    if target.endswith(".__set__") or not is_known(target) or name not in _PURE:
        return "no pure function known to the tracer"
    if name in _TRAINING_FLAG:
        keyword, position = _TRAINING_FLAG[name]
        default = name in _TRAINING_BY_DEFAULT
        flag = kwargs.get(keyword, args[position] if len(args) > position else default)
        if flag:
            return "random or writes statistics in training"
    if name == "instance_norm" and kwargs.get("running_mean", args[1] if len(args) > 1 else None) is not None:
        return "may write running statistics"
    if name == "scaled_dot_product_attention":
        dropout = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
        if cast(float, dropout) > 0:
            return "random (dropout)"
    return None


def matters(target: str) -> bool:
    """Whether the target is a product, a reduction or a running sum, which a fused kernel can be better at."""
    return last_part(target) in _MATTERS


def is_elementwise(target: str) -> bool:
    """Whether the target computes each element by itself: one pass over memory, that a kernel of several can save."""
    name = last_part(target)
    return name in _ELEMENTWISE or name.removesuffix("_") in _ELEMENTWISE or name in _WRITING or name == "masked_fill_"
