"""Statements about what outlives a call: names of the module, caches, buffers that are written."""

from __future__ import annotations

import re

from torch import nn

from tests.trust.whole_programs.body import Body
from tests.trust.whole_programs.expressions import expression

_OWN = re.compile(r"self\.(\w+)")
OF_BUFFER = (
    "self.{b}.mul_(0.9).add_({m}, alpha=0.1)", "self.{b}.lerp_({m}, 0.1)", "self.{b} = 0.9 * self.{b} + 0.1 * {m}",
    "self.{b}.copy_({m})", "self.{b} += {m}", "self.{b} *= 0.5", "self.{b}.zero_()", "self.{b}.data = {m}",
    "self.{b}[1:] = self.{b}[:-1].clone()", "self.{b}[0] += 1", "torch.add(self.{b}, {m}, out=self.{b})",
    "self.{b}.data.add_(0.5)", "self.{b} = {m}", "self.{b}.set_({m})", "self.get_buffer('{b}').add_(0.25)",
)  # fmt: skip
OF_MODULE = (
    ["self.steps += 1"], ["self.steps.add_(1)"], ["self.steps = self.steps + 1"], ["self.count += int(self.steps)"],
    ["if self.steps == 0:", "    NOTES.append('first')"], ["self.memory[: {x}.shape[0]] = {x}"],
    ["self.memory = self.memory.roll(1, 0)"], ["self.memory[int(self.steps)] = {x}[0]"],
    ["{n} = {x} * (self.steps + 1)"], ["{n} = {x} + self.cached"], ["{n} = {x} * self.offset"],
    ["{n} = self._noted({x}).last * 0.5"],
    ["{n}, *_ = self._parts({x})"], ["{n} = sum(self._parts({x}))"],
    ["for part in self._parts({x}):", "    {n} = part * 2"],
    ["{n} = self._step_late({x}, scale=0.25)"], ["{n} = self._step_own({x}) + self._step_own({x}[:1])"],
    ["{n} = {x} * self.config.scale"], ["{n} = self.tied({x}) + self.left({x})"],
    ["{n} = self.below({x}); {k} = self.beside({x})"],
    ["for block in self.blocks:", "    {x} = block({x})"], ["self.config.scale = 0.75"],
    ["vars(self).pop('cached', 0)"],
    ["{n} = getattr(self, 'state') + {x}"], ["{n} = self.proj.weight.mean() + {x}"],
    ["{n} = F.linear({x}, self.proj.weight)"],
    ["self.last = self.last if self.last is not None else {x}", "{n} = self.last + {x}"],
    ["{n} = self.conv({x}) + self.depthwise({x})"], ["{n} = F.conv1d({x}, self.depthwise.weight, padding=1, groups=4)"],
    ["{n} = self.table.weight[{x}.argmax(-1) % 4]"],
    ["{n} = self.table(torch.zeros({x}.shape[0], dtype=torch.long)) + {x}"],
)  # fmt: skip
OF_NAMES = (
    ["global COUNT", "COUNT += 1"], ["global COUNT", "COUNT = {x}.shape[0]"], ["global LATEST", "LATEST = {e}"],
    ["global LATEST", "if LATEST is None:", "    LATEST = {x}"], ["{n} = {x} if LATEST is None else LATEST + {x}"],
    ["{n} = {x} * (COUNT + 1)"], ["CACHE['k'] = {e}"], ["{n} = CACHE.setdefault('k', {e})"], ["{n} = remembered({x})"],
    ["if 'k' in CACHE:", "    {n} = CACHE['k'] * 0.5", "else:", "    {n} = {x}"], ["CACHE.clear()"],
    ["{n} = CACHE.get('k', {x}) + 0.5"], ["CACHE[{x}.shape] = {x}"], ["global SCALE", "SCALE = 0.25"],
    ["FLAGS['deep'] = not FLAGS['deep']"],
    ["if {x}.dtype not in CACHE:", "    CACHE[{x}.dtype] = {e}", "{n} = CACHE[{x}.dtype]"],
)  # fmt: skip


def of_names(body: Body) -> list[str] | None:
    """`global` is a statement of the function's body, before the name is read."""
    lines = _filled(body, body.rng.choice(OF_NAMES))
    if lines and lines[0].startswith("global"):
        named = lines[0].split()[1]
        if body.depth or any(named in line for line in body.lines):
            return None
    return lines


def of_module(body: Body) -> list[str] | None:
    module = body.namespace.get("self")
    if not isinstance(module, nn.Module):
        return of_names(body)
    if body.rng.random() < 0.6:
        there = set(dir(module))
        return _filled(
            body, body.rng.choice([form for form in OF_MODULE if there.issuperset(_OWN.findall("".join(form)))])
        )
    buffer = body.rng.choice([name for name in ("ema", "state", "memory") if hasattr(module, name)])
    name = body.pick()
    if name is None:
        return None
    mean = (
        f"{name}.mean(dim=tuple(range({name}.dim() - 1)))"
        if body.rng.random() < 0.5
        else f"{name}.flatten(0, -2).mean(0)"
    )
    mean += body.rng.choice(("", ".detach()", ".to(self.state.dtype)"))
    line = body.rng.choice(OF_BUFFER).replace("{b}", buffer).replace("{m}", mean)
    return ["with torch.no_grad():", f"    {line}"] if body.rng.random() < 0.2 else [line]


def _filled(body: Body, form: list[str]) -> list[str] | None:
    name, made = body.pick(), expression(body)
    if name is None or made is None:
        return None
    bound, other = body.fresh(), body.unused("also")
    return [line.replace("{n}", bound).replace("{k}", other).replace("{x}", name).replace("{e}", made) for line in form]
