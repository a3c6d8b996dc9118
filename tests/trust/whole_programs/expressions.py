"""Expressions over what a body has. Whether they run is seen when their statement is added."""

from __future__ import annotations

import torch
from torch import nn

from tests.trust.whole_programs.body import Body

UNARY = (
    "F.gelu({})", "torch.tanh({})", "{}.sigmoid()", "F.silu({})", "torch.relu({})", "{} * 0.5", "{} * SCALE", "-{}",
    "1.0 - {}", "{}.clamp(-1, 1)", "{}.abs()", "{} ** 2 * 0.25", "{}.pow(2).mean(-1, keepdim=True)",
    "torch.exp(-{}.abs())", "torch.sqrt({}.abs() + 1e-3)", "F.softplus({})", "{}.softmax(-1)",
    "F.log_softmax({}, dim=-1)", "torch.softmax({}.float(), dim=-1)", "F.normalize({}, dim=-1)", "{} / {}.shape[-1]",
    "F.layer_norm({}, {}.shape[-1:])", "{}.sum(-1, keepdim=True) * 0.1", "{}.mean(dim=0, keepdim=True)",
    "{} - {}.mean(-1, keepdim=True)", "{}.amax(dim=-1, keepdim=True)", "{}.std(-1, keepdim=True, unbiased=False)",
    "torch.logsumexp({}, -1, keepdim=True)", "{}.cumsum(-1) * 0.1", "{}.float()", "F.leaky_relu({}, 0.2)", "{}.sin()",
    "F.dropout({}, 0.1, training=False)", "torch.where({} > 0, {}, 0.0)", "{}.masked_fill({} < 0, 0.0)", "helper({})",
    "{}.double().float()", "torch.rsqrt({}.square().mean(-1, keepdim=True) + EPS) * {}", "{}.to(dtype=torch.float32)",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} * {1}", "{0} - {1}", "{0} / ({1}.abs() + 1.0)", "torch.maximum({0}, {1})", "{0} + {1} * 0.5",
    "torch.add({0}, {1}, alpha=2)", "F.silu({0}) * {1}", "torch.lerp({0}, {1}, 0.25)", "{0}.mul({1})", "{0}.add({1})",
    "torch.where({1} > 0, {0}, {1})", "torch.addcmul({0}, {1}, {1}, value=0.5)", "combine({0}, {1})",
    "combine({0}, other={1})", "{0} + {1}.to({0}.dtype)", "{0}.type_as({1}) + {1}", "({0} + {1}).tanh()",
)  # fmt: skip
PRODUCTS = (
    "{0} @ {1}.mT * 0.2", "torch.matmul({0}, {1}.transpose(-1, -2)) * 0.2", "F.linear({0}, {1}) * 0.2",
    "torch.einsum('...ik,...jk->...ij', {0}, {1}) * 0.2", "({0} @ {1}.mT).softmax(-1) @ {1}",
    "F.scaled_dot_product_attention({0}, {1}, {1})", "({0} @ {1}.mT * 0.2).softmax(dim=-1)",
)  # fmt: skip
VIEWS = (
    "{}.transpose(-1, -2)", "{}.mT", "{}.view(-1)", "{}.reshape(-1, {}.shape[-1])", "{}.flatten()", "{}.unsqueeze(0)",
    "{}[0]", "{}[:, :2]", "{}[..., :4]", "{}[..., 1:]", "{}[..., ::2]", "{}[:, None]", "{}[-1:]", "{}.contiguous()",
    "{}.clone()", "{}.detach()", "{}.squeeze(0)", "{}.chunk(2, dim=-1)[0]", "{}.narrow(-1, 0, 4)", "{}.select(0, 1)",
    "{}.unflatten(-1, (2, -1))", "{}.expand_as({})", "{}.view({}.shape)", "{}.flip(-1)", "{}.roll(1, dims=-1)",
    "{}.reshape({}.shape[0], -1)", "{}.to({}.dtype)", "{}.diagonal(dim1=-2, dim2=-1)", "{}.view_as({})", "{}.data",
    "{}.repeat(1, 2)", "torch.narrow({}, 0, 0, 1)", "{}.movedim(0, -1)", "{}.expand(2, *{}.shape)", "{}.unbind(0)[1]",
)  # fmt: skip
JOINS = (
    "torch.cat([{0}, {1}], dim=-1)", "torch.stack((-{0}, {1}))", "torch.cat(({0}[..., 4:], {1}[..., :4]), -1)",
    "torch.stack([{0}, {1}], dim=1).flatten(1, 2)", "torch.cat((-{1}[..., 1::2], {0}[..., ::2]), dim=-1)",
)  # fmt: skip


def expression(body: Body, depth: int = 2) -> str | None:
    """Of a floating-point tensor."""
    rng = body.rng
    start = body.pick()
    if start is None:
        return None
    drawn = rng.random()
    if drawn < 0.1:
        return _of_module(body, start) or start
    if drawn < 0.35:
        return _inside(body, rng.choice(UNARY), start, depth)
    if drawn < 0.65:
        return rng.choice(BINARY).format(_atom(body, start, depth), _atom(body, partner(body, start), 0))
    if drawn < 0.8:
        return _product(body, start)
    if drawn < 0.93:
        return _inside(body, rng.choice(VIEWS), start, depth)
    same = body.pick(lambda one: tuple(one.shape) == body.shape(start)) or start
    return rng.choice(JOINS).format(start, same)


def partner(body: Body, name: str) -> str:
    """A tensor that fits beside another one."""
    shape = body.shape(name)

    def fits(one: torch.Tensor) -> bool:
        try:
            return torch.broadcast_shapes(tuple(one.shape), shape) == shape
        except RuntimeError:
            return False

    return body.pick(fits, own=body.rng.random() < 0.3) or name


def _atom(body: Body, name: str, depth: int) -> str:
    """The tensor, or at times an expression of it."""
    if depth <= 0 or body.rng.random() < 0.6:
        return name
    template = body.rng.choice(UNARY)
    return f"({template.replace('{}', name)})"


def _inside(body: Body, template: str, name: str, depth: int) -> str:
    return template.replace("{}", _atom(body, name, depth - 1))


def _product(body: Body, name: str) -> str | None:
    shape = body.shape(name)
    if len(shape) < 2:
        return None
    other = body.pick(
        lambda one: one.dim() >= 2 and one.shape[-1] == shape[-1] and (one.dim() == 2 or one.shape[:-2] == shape[:-2]),
        own=True,
    )
    return None if other is None else body.rng.choice(PRODUCTS).format(name, other)


def _of_module(body: Body, name: str) -> str | None:
    """A call of a submodule or a method, or of a function that is bound in the body."""
    module = body.namespace.get("self")
    found: list[str] = [f"{one}({{}})" for one in body.names if callable(body.namespace.get(one)) and one != "self"]
    if isinstance(module, nn.Module):
        for called, child in module.named_children():
            if isinstance(child, nn.ModuleList):
                found.append(f"self.{called}[{body.rng.randrange(len(child))}]({{}})")
            elif isinstance(child, nn.ModuleDict):
                found.append(f"self.{called}[{body.rng.choice(list(child))!r}]({{}})")
            else:
                found.append(f"self.{called}({{}})")
        found += [f"self.{one}({{}})" for one in vars(type(module)) if one.startswith("_step")] * 2
        found += ["{} * self.scale", "{} * self.factor", "{} * self.options['gain']"]
    if not found:
        return None
    return body.rng.choice(found).replace("{}", name)
