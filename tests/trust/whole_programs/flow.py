"""Statements about how calls go: generators, keywords alone, exceptions, one function for several shapes."""

from __future__ import annotations

from tests.trust.whole_programs.body import Body
from tests.trust.whole_programs.expressions import expression, partner

FORMS = (
    ["{n} = sum(pieces({x}))"], ["{n} = torch.cat(list(pieces({x})), dim=-1)"], ["{n}, {k} = pieces({x})"],
    ["for piece in pieces({x}):", "    {n} = piece + 0.5"], ["{n} = functools.reduce(torch.add, pieces({x}))"],
    ["{n} = next(pieces({x}))"], ["{k} = pieces({x})", "{n} = next({k}) + next({k})"],
    ["{n} = torch.stack([p * SCALE for p in pieces({x}) if p.dim() > 1])"],
    ["{n} = gated({x}, gate={y})"], ["{n} = gated({e}, gate={x}, limit=1.0)"], ["{n} = gated(gate={x}, x={y})"],
    ["{n}, {k} = helper({x}), helper({x}[..., :4])"], ["{n} = helper({x})[:1] + helper({x}[:1], gain=2.0)"],
    ["{n} = combine({x}[:1], other={x}) + combine({x}, {y}, scale=0.25)"], ["{n} = combine({x}.mT).mT + combine({x})"],
    ["{n} = functools.partial(combine, scale=0.25)({x}, {y})"], ["{n} = helper(helper({x}, gain=0.5))"],
    ["def parts(t):", "    yield t * 0.5", "    yield torch.tanh(t)", "", "{n}, {k} = parts({x})"],
    ["def parts(t):", "    for one in t.unbind(0):", "        yield torch.tanh(one)", "",
    "{n} = torch.stack(list(parts({x})))"],
    ["def parts(t):", "    yield from pieces(t)", "    NOTES.append('over')", "", "{n} = sum(parts({x}))"],
    ["try:", "    {n} = {e}", "finally:", "    NOTES.append('ended')"],
    ["try:", "    {n} = {e}", "    raise ValueError('no')", "except ValueError:", "    {n} = {x} * 0.5"],
    ["try:", "    {k} = {x}.view(-1, 7)", "except RuntimeError:", "    {n} = {e}", "else:", "    {n} = {k}"],
    ["try:", "    {n} = {x} + {y}[..., :3]", "except (RuntimeError, TypeError) as error:",
    "    NOTES.append(type(error).__name__)"],
    ["with contextlib.suppress(KeyError):", "    {n} = {e}", "    {n} = FLAGS['none']"],
    ["for _ in range(2):", "    try:", "        {n} = {e}", "        continue", "    finally:",
    "        NOTES.append('round')"],
    ["def outer(t):", "    def bound():", "        nonlocal t", "        t = t + 1", "", "    bound()",
    "    return t", "", "{n} = outer({x})"],
    ["def closed():", "    return {e}", "", "{n} = closed()", "{x} = {x} * 0.5", "{k} = closed()"],
    ["later = lambda: {x} * 2", "{x} = {e}", "{n} = later()"],
    ["{n} = [row for row in {x}][-1]"], ["{n} = {x} if {x}.sum() > 0 else {e}"], ["{n} = {x} * {x}.max().item()"],
    ["if {x}.mean() > 0:", "    {n} = {e}", "else:", "    {n} = {x}"], ["{n} = {x} * float({x}.abs().max() > 1)"],
    ["{n} = F.conv1d({x}, {x}[..., :4, :3].reshape(-1, 4, 3)[:1], padding=1)"], ["{n} = F.avg_pool1d({x}, 2)"],
    ["{n} = F.max_pool1d({x}, 3, stride=1, padding=1)"], ["{n} = F.pad({x}, (1, 1))"],
    ["{n} = {x}.unfold(-1, 4, 2).mean(-1)"],
    ["{n} = F.interpolate({x}[None], scale_factor=2, mode='nearest')[0]"],
    ["{n} = F.conv2d({x}[None, None], torch.ones(1, 1, 2, 2) * 0.25)"],
)  # fmt: skip
OF_CONFIG = (
    ["{n} = {x} * config.scale"], ["if config.deep:", "    {n} = {e}", "else:", "    {n} = {x}"],
    ["{n} = {x} if config is None else {x}[..., : config.width] * config.scale"], ["{n} = {e} if config.deep else {x}"],
    ["{n} = combine({x}, {y}, scale=config.scale)"],
)  # fmt: skip


def called(body: Body) -> list[str] | None:
    name, made = body.pick(), expression(body)
    if name is None or made is None:
        return None
    config = "config" in body.names and body.rng.random() < 0.4
    form = body.rng.choice(OF_CONFIG if config else FORMS)
    other, bound = partner(body, name), body.fresh()
    kept = body.unused("also")
    filled = [line.replace("{n}", bound).replace("{k}", kept).replace("{x}", name) for line in form]
    return [line.replace("{y}", other).replace("{e}", made) for line in filled]
