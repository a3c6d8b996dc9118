"""torch.compile's fusion: element-wise operators and reductions that feed each other are one kernel, up to a product, a
convolution or an attention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mugraph.baseline.launches import LONG_ROW, Launch

OWN = frozenset(("product", "convolution", "attention"))
"""Work that a library's kernel does, which nothing is fused into."""


def fused(launches: Sequence[Launch]) -> tuple[tuple[Launch, ...], ...]:
    """Groups of launches that become one kernel each, in an order in which they can run."""
    depth: dict[int, int] = {}
    group_of: dict[int, int] = {}
    groups: list[tuple[int, list[Launch]]] = []
    for launch in launches:
        before = max((depth.get(value, 0) for value in launch.reads), default=0)
        if launch.work in OWN:
            groups.append((before, [launch]))
            depth.update(dict.fromkeys(launch.writes, before + 1))
            continue
        # Of the same depth: between the same library kernels, so that no path leads out of the group and back.
        near = {group_of[value] for value in launch.reads if value in group_of and groups[group_of[value]][0] == before}
        number = min(near, default=len(groups))
        if not near:
            groups.append((before, []))
        for other in near - {number}:  # the launch joins them
            groups[number][1].extend(groups[other][1])
            groups[other][1].clear()
            group_of.update({value: number for value, of in group_of.items() if of == other})
        groups[number][1].append(launch)
        depth.update(dict.fromkeys(launch.writes, before))
        group_of.update(dict.fromkeys(launch.writes, number))
    return tuple(tuple(members) for _, members in sorted(groups, key=lambda group: group[0]) if members)


def joined(
    group: Sequence[Launch], groups: Sequence[Sequence[Launch]], read_after: Collection[int], held: Mapping[int, int]
) -> Launch:
    """The group as one kernel: it reads what it does not make, and writes what others read.

    read_after: values that are read after the last launch. held: bytes of each value that owns memory: what several
    launches read of it, in parts or all of it, is read once
    """
    if len(group) == 1:
        return group[0]
    made = {value: size for launch in group for value, size in launch.writes.items()}
    outside = {value for other in groups if other is not group for launch in other for value in launch.reads}
    reads: dict[int, int] = {}
    again = _again(group)
    for launch in group:
        for value, size in launch.reads.items():
            if value not in made:
                reads[value] = min(held.get(value, size), size + reads.get(value, 0))
    kept = {value: size for value, size in made.items() if value in outside or value in read_after}
    reduces = any(launch.work == "reduction" for launch in group)
    reads = {value: size * (1 + again) for value, size in reads.items()}
    return Launch("reduction" if reduces else "elementwise", reads, kept, dtype=group[0].dtype)


def _again(group: Sequence[Launch]) -> int:
    """How often the kernel has to read again what it reads: for each reduction of long rows after another one, and for
    what is computed of a row once its reduction is known."""
    after: dict[int, int] = {}
    most = 0
    for launch in group:
        before = max((after.get(value, 0) for value in launch.reads), default=0)
        most = max(most, before if _is_wide(launch) else 0)
        after.update(dict.fromkeys(launch.writes, before + (launch.work == "reduction" and launch.is_long)))
    return most


def _is_wide(launch: Launch) -> bool:
    """Does it read more than what a reduction leaves?"""
    return launch.work == "reduction" or sum(launch.writes.values()) > LONG_ROW
