"""Statements with whole numbers and masks: indices, embeddings, positions, counts."""

from __future__ import annotations

from torch import nn

from tests.trust.whole_programs.body import Body

INDICES = (
    "{x}.argmax(-1)", "torch.arange({x}.shape[0])", "torch.arange({x}.shape[-1], device={x}.device) % 2",
    "({x} > 0).sum(-1)", "({x} > 0).long()", "torch.zeros({x}.shape[0], dtype=torch.long)", "torch.tensor([1, 0, 1])",
    "{x}.topk(2, dim=-1).indices", "{x}.argsort(dim=-1)", "torch.where({x} > 0, 1, 0)",
    "({x}[..., 0] > 0).nonzero()[:, 0]",
    "{x}.flatten().argmax()", "torch.bucketize({x}, torch.tensor([0.0]))",
)  # fmt: skip
OF_INDICES = (
    "1 - {i}", "{i} * 1", "({i} + 1) % 2", "{i}.clamp(0, 1)", "{i}.flatten()", "{i}[..., :2]", "{i}.unsqueeze(-1)",
    "{i}.cumsum(0) % 2", "{i}.flip(0)", "{i} ^ 1", "{i} & 1", "{i}[None]", "{i} // 2",
)  # fmt: skip
READ = (
    "{x}[{i}]", "{x}[:, {i}]", "{x}[..., {i}]", "{x}.index_select(0, {i})", "F.embedding({i}, {x})",
    "torch.gather({x}, -1, {i})", "torch.gather({x}, 1, {i}.unsqueeze(-1))", "{x} * {i}.to({x}.dtype)",
    "{x} + {i}.unsqueeze(-1)", "{x} * {i}", "F.one_hot({i}, 8).to({x}.dtype)", "F.one_hot({i}).float() * 0.5",
    "{x}.take_along_dim({i}, dim=-1)", "torch.where({i}.unsqueeze(-1) > 0, {x}, 0.5)", "{x}[{i} == 1]",
    "{x}.masked_fill(({i} == 0).unsqueeze(-1), 0.0)", "{x} / (1 + {i}.sum())", "{i}.float().mean() * {x}",
    "torch.index_select({x}, -1, {i}) * 0.5", "{x}[torch.arange({x}.shape[0]), {i}]", "{x}[{i}, 1:]",
    "torch.zeros_like({x}).index_add(0, {i}, {x}[: {i}.shape[0]])", "{x}[{i}.max()]", "{x}[int({i}[0])]",
    "torch.zeros_like({x}).scatter(-1, {i}, 1.0)", "{x}.sum(-1) * ({i} > 0)", "torch.take({x}, {i})",
    "torch.zeros_like({x}).scatter_add(0, {i}.unsqueeze(-1).expand_as({x}), {x})",
)  # fmt: skip
MASKED = (
    "{x}[{x} > 0]", "{x}[{x}[..., 0] > 0]", "torch.where({m}, {x}, 0.0)", "{x}.masked_fill({m}, 0.5)", "{x} * {m}",
    "{x}.masked_fill(~{m}, float('-inf')).softmax(-1).nan_to_num()", "{x}[{m}].sum()", "{x}[:, 1:]", "{x}[1:, ::2]",
    "{x}.sort(dim=-1)[0]", "{x}.topk(2, dim=-1).values", "{x}.masked_select({m})", "({x} * {m}.float()).sum(-1)",
    "torch.where({x} > 0, {x}, {x} * 0.1)", "{x}.tril()", "{x} + torch.arange({x}.shape[-1])",
    "{x} * torch.arange({x}.shape[0], dtype={x}.dtype)[:, None]",
)  # fmt: skip
WRITES = (
    "{x}[{i}] = 0.5", "{x}[{i}] += 1.0", "{x}.index_fill_(0, {i}, 0.5)", "{x}.scatter_(-1, {i}, 0.5)",
    "{x}[{i}] = {x}[{i}] * 0.5", "{x}[{x} > 0] = 0.0", "{x}[{x} < 0] *= 0.5",
    "{x}.index_add_(0, {i}, {x}[: {i}.shape[0]] * 0.5)",
    "{x}[:, 1:] = {x}[:, :-1].clone()", "{i} += 1", "{i}.clamp_(0, 1)", "{x}.index_copy_(0, {i}[:1], {x}[:1] * 0.5)",
)  # fmt: skip


def indices(body: Body) -> list[str] | None:
    """A name for whole numbers, or for a mask."""
    name, held = body.pick(), body.integers()
    if name is None:
        return None
    bound = body.unused(body.rng.choice(("idx", "pos", "order", "picked")))
    if held and body.rng.random() < 0.5:
        return [f"{bound} = {body.rng.choice(OF_INDICES).replace('{i}', body.rng.choice(held))}"]
    if body.rng.random() < 0.25:
        limit = body.rng.choice(("> 0", "<= 0.5", f"> {name}.mean()"))
        return [f"{body.unused('keep')} = {name} {limit}"]
    return [f"{bound} = {body.rng.choice(INDICES).replace('{x}', name)}"]


def read(body: Body) -> list[str] | None:
    """A floating-point result of them."""
    rng, name = body.rng, body.pick(own=body.rng.random() < 0.2)
    held, masks = body.integers(), body.masks()
    if name is None:
        return None
    module = body.namespace.get("self")
    tables = (
        [f"self.{n}" for n, one in module.named_children() if isinstance(one, nn.Embedding)]
        if isinstance(module, nn.Module)
        else []
    )
    if tables and held and rng.random() < 0.4:
        return [f"{body.fresh()} = {rng.choice(tables)}({rng.choice(held)})"]
    if held and rng.random() < 0.7:
        return [f"{body.fresh()} = {rng.choice(READ).replace('{i}', rng.choice(held)).replace('{x}', name)}"]
    mask = rng.choice(masks) if masks else f"({name} > 0)"
    return [f"{body.fresh()} = {rng.choice(MASKED).replace('{m}', mask).replace('{x}', name)}"]


def written(body: Body) -> list[str] | None:
    """A write at places that indices give."""
    name, held = body.pick(), body.integers()
    if name is None:
        return None
    form = body.rng.choice(WRITES)
    if "{i}" in form and not held:
        return None
    return [form.replace("{i}", body.rng.choice(held or [""])).replace("{x}", name)]
