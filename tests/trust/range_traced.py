"""Kernels for a size in a range, from code: what divides by how many there are, reads a part of an axis, or what is
joined along it."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.limits import Limits
from mugraph.sizes.table import SizeTable
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.ranged import ranged_units

CODE = {
    "a variance": "x=f32[2, t, 8]; return torch.tanh(x).var(1, unbiased=False)",
    "an unbiased variance": "x=f32[2, t, 8]; return torch.tanh(x).var(1)",
    "a layer norm": "x=f32[5, t], w=f32[t]; return F.layer_norm(x, (x.shape[1],), w)",
    "an instance norm": "x=f32[2, 3, t]; return F.instance_norm(x)",
    "a share": "x=f32[2, t, 8]; return torch.tanh(x).sum(1) / x.shape[1]",
    "a scale": "q=f32[2, 4, 16], k=f32[2, t, 16]; return torch.softmax(q @ k.mT * k.size(1) ** -0.5, -1)",
    "differences": "x=f32[2, t, 8]; return torch.tanh(x[:, 1:] - x[:, :-1]).sum(2)",
    "all but the last": "x=f32[2, t, 8]; return torch.softmax(x[:, :-1], dim=1)",
    "joined rows": "q=f32[2, 4, 16], c=f32[2, t, 16], k=f32[2, 1, 16];"
    " return torch.softmax(q @ torch.cat((c, k), dim=1).mT, -1)",
    "joined lengths": "s=1..24, x=f32[2, s, 8], y=f32[2, t, 8]; return torch.tanh(torch.cat((x, y), dim=1)).sum(1)",
    "chunks joined to a cache": "s=1..24, q=f32[2, 4, s, 16], c=f32[2, 2, t, 16], k=f32[2, 2, s, 16],"
    " p=f32[2, 2, t, 8], v=f32[2, 2, s, 8]; keys, values = torch.cat((c, k), dim=2), torch.cat((p, v), dim=2);"
    " return F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)",
    "latent keys and values": "s=1..24, q=f32[2, s, 16], c=f32[2, t, 16], k=f32[2, s, 16];"
    " rows = torch.cat((c, k), dim=1); return torch.softmax(q @ rows.mT, -1) @ rows",
    "sinks before both": "s=1..24, q=f32[2, s, 16], a=f32[2, 4, 16], c=f32[2, t, 16], k=f32[2, s, 16];"
    " return torch.softmax(q @ torch.cat((a, c, k), dim=1).mT, -1)",
    "a fixed length behind both": "s=1..24, x=f32[2, s, 8], y=f32[2, t, 8], z=f32[2, 3, 8];"
    " return torch.tanh(torch.cat((x, y, z), dim=1)).sum(1)",
    "rows at an index": "i=i64[t], x=f16[t, 1, 16], w=f16[7, 16, 8]; return torch.bmm(x, w[i])",
    "an embedding": "i=i32[t], w=f16[9, 16], v=f16[16, 8]; return F.embedding(i, w) @ v",
    "a loss": "x=f32[t, 8], y=f32[t, 8]; return F.mse_loss(x, y)",
    "the last row": "q=f32[2, t, 16], k=f32[2, t, 16]; return torch.softmax(q[:, -1:] @ k.mT, -1)",
}
"""Of `t` from 2 to 41, of which 2, 21 and 41 are tested; of two ranges `s` is the other one."""
_SECONDS = 5


@cache
def traced(name: str) -> tuple[TensorProgram, KernelSource]:
    """The program, and the kernel that is best by estimate of those that can be written."""
    said, _, line = CODE[name].partition("; ")
    arguments = ", ".join(re.findall(r"(\w+)=\w+\[", said))
    lines = ("import torch", "import torch.nn.functional as F", "", "")
    text = "\n".join((*lines, f"# mugraph: t=2..41, {said}", f"def f({arguments}):", f"    {line}", ""))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code.py"
        path.write_text(text)
        (region,) = trace_file(path).regions
    units = [unit for unit in ranged_units(region)[0] if isinstance(unit, SearchUnit)]
    program = next(unit.program for unit in units if unit.program.least)
    blocks = [found.block for found in Search(program, Limits(seconds=_SECONDS)).run()]
    outputs = [tensor.name for tensor in program.outputs.values()]
    table = SizeTable(program, TARGETS["h100"], outputs)
    for candidate in kernel_candidates(blocks, TARGETS["h100"], varying=program.least):
        try:
            return program, table.source([(kernel.block, kernel.schedule) for kernel in candidate.kernels])
        except Rejected:
            continue
    raise LookupError(f"no kernel of {name} can be written")
