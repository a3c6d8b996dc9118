"""From the tape to replacement units: the outermost runs of statements, and expressions, that are pure tensor code.

Top down from the function that was called: the longest runs of clean statements in its body; in a statement that is
not clean, the largest clean expressions; where a call is not clean, the body of the function it called, and so on.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mugraph.ir.region import Range, Region
from mugraph.trace.pytorch.targets import is_elementwise, matters
from mugraph.trace.regions.assemble import Assembled, assemble
from mugraph.trace.regions.clean import is_clean
from mugraph.trace.regions.conditions import as_expressions
from mugraph.trace.regions.executions import Execution, Item, execution_of
from mugraph.trace.regions.gathering import are_stacked, lists_made, lists_written
from mugraph.trace.regions.one_place import in_one_place
from mugraph.trace.regions.replacement_unit import Offence, Refused, Unit, line_of
from mugraph.trace.regions.run_ends import trimmed
from mugraph.trace.regions.scope import Scope
from mugraph.trace.regions.ways import Found, add, overlap, searched
from mugraph.trace.run.tape import Activation, Event, Record
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import SCOPES, in_own_scope, is_elif, leaves_block, own_expressions, tensors_of

CHAIN = 2  # element-wise operators, each a pass over memory, that one kernel is better than
MAX_CALLS = 192  # above it a unit is taken apart: a whole model is no unit of search, a decoder layer is
MOST_CALLS = 1024  # of one that cannot be: an encoder of PyTorch's own. Cutting so many takes some seconds
# Evaluated many times or by others, or (in an f-string, on Python 3.11) without a place in the source
_ELSEWHERE = (ast.JoinedStr, *SCOPES)


class Partition:
    """Collects the regions of one source file over several runs. without_loops: functions of which
    no region holds a loop that appends (gathering.py). gathered: regions that hold such loops"""

    def __init__(self, without_loops: Collection[str] = ()) -> None:
        self.without_loops = without_loops
        self.gathered: set[tuple[str, Range]] = set()
        self._found: Found = {}
        self._own: Found = {}
        self.refused: dict[int, Refused] = {}
        """Of the last run that was added, by line."""

    def add_all(self, scope: Scope) -> bool:
        """Partitions what the outermost activations of a run have done; whether there is a region in it.

        One element-wise operator alone is one only where there is no other: what it costs is said, nothing is gained.
        """
        self.refused.clear()
        before, some = len(self._own) + len(self._found), False
        for least_chain in (CHAIN, 1):
            for activation in scope.tape.activations:
                if activation.site is None:
                    found: Found = {}
                    search = _Search(scope, found, self.refused, least_chain, self)
                    search.activation(activation)
                    found = in_one_place(found, search)
                    outermost = scope.name_of(activation)
                    some = some or bool(found)
                    for key, ways in found.items():
                        add(self._own if key[0] == outermost else self._found, key, *ways)
            if len(self._own) + len(self._found) > before:
                break
        return some

    def kept(self) -> tuple[Assembled, ...]:
        """In the order of the source, none overlapping another that was found before it. What was found in a function
        that was run for its own sake comes before what was found where another called it. Of code that was executed in
        several ways, as a block of several widths, there is one for each of those that were executed most."""
        kept: list[Assembled] = []
        all_found = {key: list(ways) for key, ways in self._own.items()}
        for key, ways in self._found.items():
            add(all_found, key, *ways)
        for (_, here), ways in all_found.items():
            if any(overlap(here, one.region.range) for one in kept):
                continue
            for way in searched(ways):
                region = replace(way.region, guards=as_expressions(way.conditions), times=way.times)
                kept.append(replace(way, region=region))
        return tuple(sorted(kept, key=lambda found: found.region.range.start))

    def left(self) -> Mapping[int, Refused]:
        """Of the last run, lines that are in no region because something of the tensor code around them is refused."""
        ranges = [found.region.range for found in self.kept()]
        return {
            line: why
            for line, why in self.refused.items()
            if not any(one.start.line < line <= one.end.line + 1 for one in ranges)
        }

    def regions(self) -> tuple[Region, ...]:
        return tuple(found.region for found in self.kept())


@dataclass
class _Search:
    """least_chain: element-wise operators that are worth a look where there is nothing else."""

    scope: Scope
    found: Found
    refused: dict[int, Refused]
    least_chain: int
    partition: Partition
    worked: int = 0
    """Units that are regions."""

    def activation(self, activation: Activation) -> None:
        if not any(isinstance(event, Record) and event.outputs for event in self.scope.events(activation)):
            return
        self.block(activation, self.execution(activation))

    def execution(self, activation: Activation) -> Execution:
        execution, _ = execution_of(self.scope.body(self.scope.function(activation)), activation)
        return execution

    def block(self, activation: Activation, execution: Execution) -> None:
        run: list[Item] = []
        calls = 0
        own = self.scope.is_here(activation)
        for item in execution.items:
            size = sum(1 for event in self.scope.between(activation, item) if isinstance(event, Record))
            few = size <= MAX_CALLS or (
                not item.children and size <= self.most_calls(activation, self.scope.between(activation, item))
            )
            if own and few and (self.may_be_in_run(activation, item) or self.gathers(activation, item, run)):
                if calls + size > MAX_CALLS:
                    self.run(activation, run)
                    run, calls = [], 0
                run.append(item)
                calls += size
                continue
            self.run(activation, run)
            run, calls = [], 0
            self.descend(activation, item)
        self.run(activation, run)

    def most_calls(self, activation: Activation, events: Iterable[Event]) -> int:
        """That a unit may have, of what happened while one statement or expression was evaluated. What a library's code
        makes of its calls alone is not taken apart, as none of that is the user's."""
        inner = {number for event in events for number in event.site.inside(activation.index)}
        is_own = any(self.scope.is_here(self.scope.tape.activations[number]) for number in inner)
        return MAX_CALLS if is_own else MOST_CALLS

    def may_be_in_run(self, activation: Activation, item: Item) -> bool:
        statement = item.statement
        if isinstance(statement, ast.For | ast.While):
            return False
        if isinstance(statement, ast.Return):
            returned = tensors_of(statement, activation.returned.get(item.first))
            return bool(returned) and is_clean(activation, self.scope.between(activation, item))
        return not leaves_block(statement) and is_clean(activation, self.scope.between(activation, item))

    def gathers(self, activation: Activation, item: Item, run: Sequence[Item]) -> bool:
        """Whether it is a loop that appends to lists that the run before it makes, and is clean with it."""
        if not isinstance(item.statement, ast.For) or leaves_block(item.statement):
            return False
        if self.scope.name_of(activation) in self.partition.without_loops:
            return False
        made = lists_made(event for before in run for event in self.scope.between(activation, before))
        events = self.scope.between(activation, item)
        return not made.isdisjoint(lists_written(events)) and is_clean(activation, events, made)

    # -- units

    def run(self, activation: Activation, items: Sequence[Item]) -> None:
        """Makes the best of consecutive clean statements."""
        items = trimmed(self.scope, activation, items)
        if not items or not self.is_relevant(self.scope.between(activation, items[0], items[-1])):
            return
        if (loop := self.ungathered(activation, items)) is not None:
            self.run(activation, items[:loop])
            self.descend(activation, items[loop])
            self.run(activation, items[loop + 1 :])
            return
        statement = items[0].statement
        if len(items) == 1 and isinstance(statement, ast.Return) and not isinstance(statement.value, ast.Tuple | None):
            self.expression(activation, items[0], statement.value)
            return
        unit = _unit_of(activation, items)
        offence = self.keep(unit)
        if offence is None:
            return
        # Without the statement at fault: what stands before it and after it, and what is inside it
        culprit = next((n for n, item in enumerate(items) if item.first <= offence.step < item.after), len(items) - 1)
        self.run(activation, items[:culprit])
        # One operator alone is worth its reason here: what stands before it and after it is no longer one region
        with self.refusal(unit, offence, self.scope.between(activation, items[culprit]), least_chain=1):
            self.descend(activation, items[culprit])
        self.run(activation, items[culprit + 1 :])

    def ungathered(self, activation: Activation, items: Sequence[Item]) -> int | None:
        """The first loop of a run, where not all of its loops append what the run stacks."""
        loops = [n for n, item in enumerate(items) if isinstance(item.statement, ast.For)]
        if not loops:
            return None
        whole = self.made(_unit_of(activation, items))
        if whole is None or not are_stacked(whole.region, [items[n] for n in loops]):
            return loops[0]
        self.partition.gathered.add((whole.region.function, whole.region.range))
        return None

    def is_relevant(self, events: Iterable[Event], least_chain: int | None = None) -> bool:
        return self.has_work((event.target for event in events if isinstance(event, Record)), least_chain)

    def has_work(self, targets: Iterable[str], least_chain: int | None = None) -> bool:
        """Whether there is a product or a reduction, or a chain of element-wise operators."""
        least = self.least_chain if least_chain is None else least_chain
        chain = 0
        for target in targets:
            chain += is_elementwise(target)
            if matters(target) or chain >= least:
                return True
        return False

    def keep(self, unit: Unit) -> Offence | None:
        """Adds the region of a unit; what is wrong with it if it cannot be one."""
        result = assemble(self.scope, unit)
        if isinstance(result, Offence):
            return result
        self.worked += 1
        region = result.region
        if not self.has_work(call.target for call in region.calls):
            return None  # what mattered is dead
        add(self.found, (region.function, region.range), result)
        return None

    def made(self, unit: Unit) -> Assembled | None:
        """The region of a unit, if it can be one that is worth a look."""
        if unit.expression is None:
            events = self.scope.between(unit.activation, Item(unit.statements[0], unit.first, unit.after))
        else:
            events = self.scope.under(unit)
        records = [event for event in events if isinstance(event, Record)]
        most = MAX_CALLS if len(unit.statements) > 1 else self.most_calls(unit.activation, events)
        if len(records) > most or not is_clean(unit.activation, events):
            return None
        result = assemble(self.scope, unit)
        if isinstance(result, Offence) or not self.has_work(call.target for call in result.region.calls):
            return None
        return result

    @contextmanager
    def refusal(
        self, unit: Unit, offence: Offence | None, events: Sequence[Event], least_chain: int | None = None
    ) -> Generator[None]:
        """Keeps its reason where no part that is tried inside is a region. events: of what is at fault"""
        before = self.worked
        yield
        if offence is not None and self.worked == before and self.is_relevant(events, least_chain):
            refused = Refused(self.scope.name_of(unit.activation), offence.reason)
            self.refused.setdefault(line_of(offence, unit), refused)

    def expression(self, activation: Activation, item: Item, node: ast.expr) -> None:
        """The largest clean expressions in `node`, which was evaluated in the item's first step."""
        if isinstance(node, _ELSEWHERE):
            return
        unit = Unit(activation, item.first, item.first + 1, (), node)
        events = self.scope.under(unit)
        value = self.scope.value_of(unit)
        records = sum(1 for event in events if isinstance(event, Record))
        whole = (
            value is not None
            and records <= self.most_calls(activation, events)
            and self.scope.is_here(activation)
            and is_clean(activation, events)
        )
        if whole and not self.is_relevant(events):
            return
        offence = self.keep(unit) if whole else None
        if whole and offence is None:
            return
        with self.refusal(unit, offence, events):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(activation, item, child)
                elif isinstance(child, ast.keyword | ast.Starred):
                    self.expression(activation, item, child.value)
            self.called_from(activation, item.first, number_of(node))

    def called_from(self, activation: Activation, step: int, node: int) -> None:
        for inner in self.scope.called(activation, step):
            if inner.site is not None and inner.site.nodes and inner.site.nodes[-1] == node:
                self.activation(inner)

    def descend(self, activation: Activation, item: Item) -> None:
        """Into a statement that is no part of a run."""
        for child in item.children:
            statements = [inner.statement for inner in child.items]
            if is_elif(statements, item.statement):
                self.descend(activation, child.items[0])
            else:
                self.block(activation, child)
        for node in own_expressions(item.statement):
            self.expression(activation, item, node)
        self.hidden(activation, item)

    def hidden(self, activation: Activation, item: Item) -> None:
        """Functions run by the statement from places that no expression search enters: comprehensions, protocols."""
        searched = {number_of(n) for root in own_expressions(item.statement) for n in in_own_scope(root)}
        for inner in self.scope.called(activation, item.first):
            if inner.site is not None and (not inner.site.nodes or inner.site.nodes[-1] not in searched):
                self.activation(inner)


def _unit_of(activation: Activation, items: Sequence[Item]) -> Unit:
    """Of consecutive statements."""
    return Unit(activation, items[0].first, items[-1].after, tuple(item.statement for item in items), None)
