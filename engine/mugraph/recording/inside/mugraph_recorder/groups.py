"""Process groups that the program has set up, which model-parallel layers ask for while they run."""

from __future__ import annotations

import sys
from typing import Any


def distributed() -> dict[str, Any] | None:
    """The rank, the number of processes, and the groups that modules keep as their own names; None without any."""
    torch: Any = sys.modules.get("torch")
    dist: Any = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    groups: list[dict[str, Any]] = []
    for module, holder in list(sys.modules.items()):
        if module == "torch" or module.startswith("torch."):
            continue
        for name, value in list(getattr(holder, "__dict__", {}).items()):
            if isinstance(value, dist.ProcessGroup):
                groups.append({"module": module, "name": name, "ranks": list(dist.get_process_group_ranks(value))})
    return {"rank": dist.get_rank(), "processes": dist.get_world_size(), "groups": groups}
