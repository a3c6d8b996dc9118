"""Regions that a file's run leaves in the user's other files: in code that its own regions do not stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.trace.regions.assemble import Assembled
from mugraph.trace.regions.partition import Partition
from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import File, Record


def regions_elsewhere(scope: Scope, own: Sequence[Assembled]) -> Mapping[str, Mapping[str, None]]:
    """Path of a file -> the places of its regions. own: the file's own regions"""
    left = {
        number
        for number, event in enumerate(scope.tape.events)
        if isinstance(event, Record) and event.outputs
    } - _covered(scope, own)  # fmt: skip
    found: dict[str, Mapping[str, None]] = {}
    for file in _others(scope, left):
        there = replace(scope, here=file, _inner={})
        partition = Partition()
        partition.add_all(there)
        kept = [one for one in partition.kept() if not left.isdisjoint(there.indices(one.unit))]
        if kept:
            found[file.source.path] = dict.fromkeys(one.region.place for one in kept)
            left -= _covered(there, kept)
    return found


def _covered(scope: Scope, regions: Sequence[Assembled]) -> set[int]:
    """Events of the run that regions stand for."""
    units = (unit for one in regions for unit in one.units if _is_of(unit, scope))
    return {number for unit in units for number in scope.indices(unit)}


def _is_of(unit: Unit, scope: Scope) -> bool:
    """Whether it is of this run: regions of earlier ones are kept as well."""
    run, activation = scope.tape.activations, unit.activation
    return activation.index < len(run) and run[activation.index] is activation


def _others(scope: Scope, left: set[int]) -> list[File]:
    """The user's other files in whose functions the events happened."""
    found: dict[str, File] = {}
    for activation in scope.tape.activations:
        file = scope.file_of(activation)
        if not file.is_own or file.source.path == scope.here.source.path:
            continue
        if not left.isdisjoint(range(activation.event, activation.end)):
            found.setdefault(file.source.path, file)
    return list(found.values())
