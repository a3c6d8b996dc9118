"""Small files whose functions write to memory in ways that their calls do not say: through views, into `out`, into
tensors of the module, also those that were made in the inference mode. The same seed gives the same file."""

from __future__ import annotations

import random
from typing import Any

import torch

from tests.trust.whole_programs.blocks import indented
from tests.trust.whole_programs.head import HEAD

ENTRIES = 4
ATTEMPTS = 100
MODES = ("", "@torch.no_grad()\n", "@torch.inference_mode()\n", "@torch.inference_mode\n")
WRITES = (
    "torch.mul({h}, 2.0, out={h})",
    "{h}.view(8, 4).add_(1.0)",
    "F.relu({h}.view(8, 4), inplace=True)",
    "{h}.copy_({o} * 0.5)",
    "{h}[:, :3] = 0.25",
    "{h}[1:] += {o}[1:]",
    "{h}.index_put_((IDX,), {o}[:2])",
    "{h}.index_copy_(0, IDX, {o}[:2])",
    "{h}.t().mul_(0.5)",
    "{h}.detach().add_(0.5)",
    "{h}.data.mul_(0.5)",
    "{h}.unbind(0)[1].zero_()",
    "{h}.chunk(2, -1)[0].exp_()",
    "torch.add({h}, {o}, out={h})",
    "torch.exp({h}[:, :4], out={h}[:, :4])",
    "nn.init.zeros_({h}[:, :3])",
    "{h}.masked_fill_({h} > 0.5, 0.5)",
    "{h}.scatter_(1, torch.zeros(4, 1, dtype=torch.long), 0.5)",
    "torch._foreach_add_([{h}], 1.0)",
    "torch._foreach_mul_([{h}.view(-1)], 0.5)",
    "{h}.fill_diagonal_(1.0)",
    "{h}.squeeze().clamp_(-0.5, 0.5)",
    "{h}.as_strided((4,), (9,)).zero_()",
    "torch.Tensor.add_({h}, {o})",
    "operator.iadd({h}, {o})",
    "vec = {h}.flatten(); vec += 1",
    "{h}.index_fill_(0, IDX, 0.1)",
    "{h}.__setitem__(slice(0, 2), 0.5)",
    "torch.add({o}, 1, out={h}[:])",
    "(lambda t: t.mul_(0.5))({h})",
    "F.dropout({h}, 0.5, False, True)",
    "F.threshold_({h}, 0.0, 0.1)",
    "torch.sigmoid_({h})",
    "{h}.swapaxes_(0, 1).swapaxes_(0, 1)",
    "for row in {h}:\n    row.add_(0.25)",
    "for i in range(4):\n    {h}[i].mul_(i)",
    "torch.stack([{o}, {o}], out=torch.empty(2, 4, 8))",
    "torch.split({h}, 4, dim=1)[1].neg_()",
    "BUF.copy_({h}); {h}.add_(BUF)",
    "BUF.add_({h})",
    "torch.cat(({h}[:2], {o}[2:]), out=BUF)",
    "BUF[IDX] = {h}[:2]",
    "INF.add_({h})",
    "INF[IDX] = {h}[:2]",
    "INF.view(8, 4).mul_(0.5)",
    "torch.tanh({h}, out=INF)",
    "F.batch_norm({h}, RM, RV, training=True)",
    "{h} = F.batch_norm({h}, RM, RV, training=True)",
    "sc.scale_({h})",
)
READS = (
    "{n} = torch.tanh({h}) + {o}",
    "{n} = torch.softmax({h} * {o}, -1)",
    "{n} = {h} * torch.sigmoid({h})",
    "{n} = {h} @ w",
    "{n} = {h} - BUF",
    "{n} = {h} * INF + 0.1",
    "{n} = {h}.view(8, 4).view(4, 8) * 0.5",
    "{n} = ({h} + RM) * {o}",
    "{n} = {h}.mean(-1, keepdim=True) + {h}",
    "{n} = torch.exp({h}.t()).t() * 0.1",
    "{n} = {h}[:]",
    "{n} = {h}.detach()",
    "{n} = {h}.contiguous()",
)
OWNED = (
    HEAD
    + """
import operator

IDX = torch.tensor([0, 2])
BUF = torch.full((4, 8), 0.5)
RM = torch.zeros(8)
RV = torch.ones(8)
with torch.inference_mode():
    INF = torch.full((4, 8), 0.25)


@torch.inference_mode()
def made_outside(t):
    return t * 0.5 + 1


class Scaler:
    @torch.inference_mode()
    def scale_(self, t):
        t.mul_(0.5)
        return t


sc = Scaler()
"""
)
ANEW = ("BUF.fill_(0.5); RM.fill_(0.1); RV.fill_(1.0)", "with torch.inference_mode():", "    INF.fill_(0.25)")


def drawn(seed: int) -> str:
    """The text of a file whose functions run in plain PyTorch."""
    rng = random.Random(f"hidden writes/{seed}")
    return OWNED + "".join(f"\n\n{_function(rng, number)}" for number in range(ENTRIES))


def _function(rng: random.Random, number: int) -> str:
    mode = rng.choice(MODES)
    for _ in range(ATTEMPTS):
        text = "\n".join([
            f"# mugraph: x=f32[4, 8], y=f32[4, 8], w=f32[8, 8]\n{mode}def f{number}(x, y, w):",
            *indented([*ANEW, *_body(rng)]),
        ])  # fmt: skip
        if _runs(text, f"f{number}"):
            return f"{text}\n"
    raise AssertionError("nothing that runs was drawn")


def _runs(text: str, name: str) -> bool:
    own: dict[str, Any] = {}
    exec(OWNED + text, own)
    try:
        with torch.no_grad():
            own[name](torch.randn(4, 8), torch.randn(4, 8), torch.randn(8, 8) * 0.3)
    except (RuntimeError, ValueError, IndexError, NameError):
        return False
    return True


def _body(rng: random.Random) -> list[str]:
    names, lines = ["x", "y"], list[str]()
    for number in range(rng.randint(4, 8)):
        target, other = rng.choice(names[-3:]), rng.choice(names)
        if rng.random() < 0.45 and len(names) > 2:
            written = rng.choice([target, "BUF", "INF"])
            lines += rng.choice(WRITES).format(h=written, o=other).splitlines()
            continue
        form = "{n} = made_outside({h})" if rng.random() < 0.1 else rng.choice(READS)
        lines.append(form.format(h=target, o=other, n=f"h{number}"))
        names.append(f"h{number}")
    if rng.random() < 0.3:
        lines = [rng.choice(("with torch.no_grad():", "for _ in range(2):")), *indented(lines)]
    seen = [*names[2:], "BUF.clone()", "INF.clone()", "RM.clone()"]
    return [*lines, f"return [{', '.join(seen)}]"]
