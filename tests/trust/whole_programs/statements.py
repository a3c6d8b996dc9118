"""Statements of one line or a few: what binds names, and what writes to memory that has other names."""

from __future__ import annotations

from tests.trust.whole_programs.body import Body
from tests.trust.whole_programs.expressions import expression, partner

IN_PLACE = (
    "{}.mul_({})", "{}.add_({})", "{}.add_({}, alpha=0.5)", "{}.sub_({})", "{}.copy_({})", "{}.clamp_(-1, 1)",
    "{}.relu_()", "{}.tanh_()", "{}.zero_()", "{}.fill_(0.5)", "F.relu({}, inplace=True)", "{}.div_(2.0)",
    "torch.add({0}, {1}, out={0})", "{}.masked_fill_({0} < 0, 0.0)", "{}.lerp_({}, 0.5)", "{}.neg_()",
    "{}.exp_().log_()",
    "{}.unsqueeze_(0)", "{}.t_()", "{}.sigmoid_()", "F.silu({}, inplace=True)", "{}.resize_as_({0})",
    "{}.sqrt_().pow_(2)",
)  # fmt: skip
AUGMENTED = ("+=", "+=", "*=", "-=", "/=")
PLACES = ("[:, :2]", "[0]", "[..., 1:]", "[-1:]", "[:]", "[..., ::2]", "[...]", "[{0} > 0]", "[:, 0]", "[1, 2]")


def assignment(body: Body) -> list[str] | None:
    made = expression(body)
    if made is None:
        return None
    name, drawn = body.fresh(), body.rng.random()
    if drawn < 0.05:
        return [f"{name}: torch.Tensor = {made}"]
    if drawn < 0.1:
        return [f"{name} = {body.unused('same')} = {made}"]
    if drawn < 0.15:
        return [f"{name} = (", f"    {made}", ")  # in parentheses"]
    if drawn < 0.18 and body.depth == 0:
        return [f"{name} = {made}; {body.unused('w')} = {name}.shape[0]"]
    return [f"{name} = {made}"]


def alias(body: Body) -> list[str] | None:
    """A second name for a tensor, or a view of it, that is there to be read after a write."""
    name = body.pick(own=True)
    form = body.rng.choice(("{}", "{}[:1]", "{}.view(-1)", "{}.mT", "{}[..., :4]", "{}.detach()", "{}.contiguous()"))
    return None if name is None else [f"{body.fresh()} = {form.replace('{}', name)}"]


def in_place(body: Body) -> list[str] | None:
    name = body.pick(own=body.rng.random() < 0.1)
    if name is None or name.startswith("self.w"):
        return None
    other = partner(body, name)
    form = body.rng.choice(IN_PLACE).replace("{0}", name).replace("{1}", other)
    first = form.replace("{}", name, 1).replace("{}", other)
    bound = body.rng.random()
    return [f"{body.fresh()} = {first}"] if bound < 0.25 else [first]


def augmented(body: Body) -> list[str] | None:
    name = body.pick()
    if name is None:
        return None
    other = partner(body, name)
    value = body.rng.choice(
        (other, f"{other} * 0.5", f"torch.tanh({other})", "0.5", f"F.silu({other}) + 0.1", f"{name} * {other}")
    )
    if value == other and body.rng.random() < 0.4:
        value = expression(body) or other
    return [f"{name} {body.rng.choice(AUGMENTED)} {value}"]


def slice_write(body: Body) -> list[str] | None:
    name = body.pick()
    if name is None:
        return None
    place = body.rng.choice(PLACES).replace("{0}", name)
    value = body.rng.choice(
        ("0.0", f"{partner(body, name)}{place}", f"{name}{place} * 0.5", f"torch.tanh({name}{place})")
    )
    return [f"{name}{place} {body.rng.choice(('=', '=', '+=', '*='))} {value}"]


def unpacking(body: Body) -> list[str] | None:
    name, other = body.pick(), body.pick()
    if name is None or other is None:
        return None
    a, b = body.fresh(), body.fresh()
    forms = (
        f"{a}, {b} = {name}.chunk(2, dim=-1)",
        f"{a}, {b} = {name}, {other}",
        f"{name}, {other} = {other}, {name}",
        f"{a}, *{body.unused('rest')} = {name}.unbind(0)",
        f"({a}, {b}), {body.unused('n')} = ({expression(body)}, {other}), {name}.shape[0]",
        f"{a}, {b} = {name}.split([2, {name}.shape[-1] - 2], dim=-1)",
        f"[{a}, {b}] = torch.unbind({name}[:2])",
        f"{a}, {b} = {name}.max(dim=-1, keepdim=True)[0], {expression(body)}",
    )
    return [body.rng.choice(forms)]


def container(body: Body) -> list[str] | None:
    """Of dicts, lists and attributes."""
    name, made = body.pick(), expression(body)
    if name is None or made is None:
        return None
    forms = [
        [f"{body.unused('parts')} = {{'first': {made}, 'second': {name}}}"],
        [f"{body.unused('pair')} = ({made}, {name})"],
        [f"{body.unused('outs')} = [{name}, {made}]"],
        [f"{body.fresh()} = [t * 0.5 for t in ({name}, {name})][0]"],
        [f"{body.fresh()} = torch.stack([torch.tanh(row) for row in {name}.unbind(0)])"],
        [f"{body.fresh()} = sum(t.mean(0, keepdim=True) for t in ({name}, {name}))"],
        [f"{body.fresh()} = list(map(torch.relu, [{name}, {name} * 2]))[1]"],
        [f"{body.fresh()} = next(iter(({made},)))"],
        [f"{body.fresh()} = helper(*[{name}])"],
        [f"{body.fresh()} = combine(**{{'x': {name}, 'other': {name}}})"],
        [f"{body.fresh()} = max(({name}, {name}), key=len)"],
    ]
    for held in body.names:
        value = body.namespace.get(held)
        if isinstance(value, dict) and value:
            forms += [
                [f"{held}['first'] = {made}"],
                [f"{body.fresh()} = {held}['first'] * 0.5"],
                [f"{held}.update(second={made})"],
                [f"{body.fresh()} = {held}.get('second')"],
            ] * 2
        if isinstance(value, list) and value:
            forms += [
                [f"{held}.append({made})"],
                [f"{body.fresh()} = {held}[-1]"],
                [f"{held}[0] = {made}"],
                [f"{body.fresh()} = {held}.pop()"],
                [f"{held}[0] += 0.5"],
            ] * 2
        if isinstance(value, tuple) and value:
            forms += [[f"{body.fresh()} = {held}[0] + {held}[0]"]]
    if "self" in body.names:
        forms += [
            [f"self.last = {made}"], ["self.count += 1"], [f"self.last = {name}"], ["self.state += 0.5"],
            [f"self.state = {name}.mean(0).mean(0).sum() + self.state * 0.5"], [f"self.state[:] = {name}.mean()"],
            [f"self.state.mul_(0.5).add_({name}.detach().mean())"], [f"self.seen.append({name})"],
            [f"self.seen.append({name}.shape)"],
            [f"{body.fresh()} = {name} if self.last is None else {made}"], [f"setattr(self, 'last', {name})"],
        ] * 2  # fmt: skip
    return body.rng.choice(forms)


def aside(body: Body) -> list[str] | None:
    """What computes nothing of the result."""
    name = body.pick()
    if name is None:
        return None
    shape = body.shape(name)
    forms = [
        ["# and then"], [f"assert {name}.shape[-1] == {shape[-1]}, f'{{{name}.shape}}'" if shape else "pass"],
        [f"NOTES.append(f'{{tuple({name}.shape)}} {{{name}.dtype}}')"], ["NOTES.append('here')"],
        [f"LOGGER.debug('shape %s', {name}.shape)"], ['"""A text between."""'], [f"NOTES.append({name}.shape[0])"],
        [f"{body.unused('n')} = {name}.shape[-1]"], [f"{body.unused('rows')}, *_ = {name}.shape"],
        [f"print('shape', {name}.shape, end='')"],
        [f"if not isinstance({name}, torch.Tensor):", "    raise TypeError('no tensor')"],
        [f"if {name}.dim() > 5:", f"    raise ValueError(f'{{{name}.dim()}} dimensions')"],
        [f"NOTES.append({name}.is_contiguous())"], [f"NOTES.append({name}.requires_grad)"],
        [f"NOTES.append({name}._version)"],
    ]  # fmt: skip
    if len(body.names) > 4 and body.rng.random() < 0.2:
        gone = body.rng.choice([one for one in body.names if one != "self"])
        forms += [[f"del {gone}"]] * 6
    return body.rng.choice(forms)


def walrus(body: Body) -> list[str] | None:
    made, name = expression(body, 1), body.pick()
    if made is None or name is None:
        return None
    bound = body.fresh()
    return body.rng.choice(
        (
            [f"{body.fresh()} = ({bound} := {made}) + {bound}.mean(-1, keepdim=True)"],
            [f"if ({body.unused('size')} := {name}.shape[-1]) > 2:", f"    {bound} = {made}"],
            [f"{body.fresh()} = torch.tanh({bound} := {made})"],
            [f"{body.fresh()} = combine(({bound} := {made}), other={bound})"],
        )
    )
