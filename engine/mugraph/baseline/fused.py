"""torch.compile's fusion: element-wise operators and reductions that feed each other are one kernel, up to a product, a
convolution or an attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from mugraph.baseline.launch import LONG_ROW, Launch

_DIMS = 4
"""Batch, heads, rows, columns: of the products that torch.compile looks for."""


def with_attentions(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """With each product, softmax and product of 16-bit numbers as one attention, as torch.compile recognises it where
    a scale, and nothing else, is between."""
    made_by = {value: launch for launch in launches for value in launch.writes}
    readers = Counter(value for launch in launches for value in launch.reads)

    def only(launch: Launch) -> Launch | None:
        """What makes the one thing that it reads, for it alone."""
        value = next(iter(launch.reads))
        return made_by.get(value) if len(launch.reads) == 1 and readers[value] == 1 else None

    gone: set[int] = set()
    found: dict[int, Launch] = {}
    for second in launches:
        between = [made_by[value] for value in second.reads if value in made_by and readers[value] == 1]
        softmax = next((one for one in between if one.work == "reduction" and one.functions), None)
        if second.work != "product" or not second.dims or second.dtype not in ("f16", "bf16") or softmax is None:
            continue
        scale = only(softmax)
        if scale is None or scale.work != "elementwise" or scale.functions:
            continue
        first = only(scale)
        if first is None or first.work != "product" or first.dims != _DIMS:
            continue
        inner = {*softmax.writes, *first.writes, *scale.writes}
        reads = {value: size for value, size in {**first.reads, **second.reads}.items() if value not in inner}
        gone |= {id(first), id(scale), id(softmax)}
        products = (*first.products, *second.products)
        found[id(second)] = Launch("attention", reads, second.writes, products, second.dtype)
    return tuple(found.get(id(launch), launch) for launch in launches if id(launch) not in gone)


def fused(launches: Sequence[Launch]) -> tuple[tuple[Launch, ...], ...]:
    """Groups of launches that become one kernel each, in an order in which they can run."""
    depth: dict[int, int] = {}
    group_of: dict[int, int] = {}
    groups: list[tuple[int, list[Launch]]] = []
    for launch in launches:
        before = max((depth.get(value, 0) for value in launch.reads), default=0)
        if launch.is_apart:
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
    again, written = _again(group), set[int]()
    for launch in group:
        for value, size in launch.reads.items():
            if value not in written:  # what a launch writes over (a bias added in place) it has read before
                reads[value] = min(held.get(value, size), size + reads.get(value, 0))
        written |= launch.writes.keys()
    kept = {value: size for value, size in made.items() if value in outside or value in read_after}
    reduces = any(launch.work == "reduction" for launch in group)
    functions = sum(launch.functions for launch in group)
    row = max(launch.row for launch in group)
    reads = {value: size * (1 + again) for value, size in reads.items()}
    work = "reduction" if reduces else "elementwise"
    return Launch(work, reads, kept, dtype=group[0].dtype, row=row, functions=functions)


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
