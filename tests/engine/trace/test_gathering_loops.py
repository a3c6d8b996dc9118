"""Loops that append what is stacked after them are one region with it; other loops are none."""

from __future__ import annotations

from tests.engine.trace.partition import Regions, ins, only, outs


def test_a_loop_that_appends(regions: Regions) -> None:
    """With statements around it. Its list, and the numbers that it counts with, are not read from outside."""
    region = only(
        regions("""
        # mugraph: seq=f32[12, 4, 8], w=f32[8, 8]
        def steps(seq, w):
            scaled = seq * 2
            kept = []
            for t in range(seq.shape[0]):
                row = scaled[t]
                kept.append(torch.softmax(row @ w, -1))
            return torch.stack(kept, dim=1)
        """)
    )
    assert (ins(region), outs(region)) == (["seq", "w"], ["return"])
    assert region.text.startswith("scaled = ")
    assert region.text.endswith("dim=1)")


def test_loops_by_items_and_in_blocks(regions: Regions) -> None:
    found = regions("""
        # mugraph: x=f32[3, 4, 8], w=f32[3, 8, 8]
        def zipped(x, w):
            made = []
            for one, by in zip(x, w):
                made.append(one @ by)
            made = torch.cat(made)
            return made.relu()

        class Heads(nn.Module):
            def __init__(self):
                super().__init__()
                self.count = 5
                self.w = nn.Parameter(torch.randn(5, 8, 8))

            # mugraph: x=f32[4, 40]
            def forward(self, x):
                heads = []
                for h in range(self.count):
                    heads += [torch.softmax(x[:, 8 * h : 8 * h + 8] @ self.w[h], -1)]
                return torch.cat(heads, -1)
        """)
    assert [(ins(region), outs(region)) for region in found] == [
        (["x", "w"], ["return"]),
        (["x", "self.w"], ["return"]),
    ]


def test_the_number_of_iterations_is_a_guard(regions: Regions) -> None:
    region = only(
        regions("""
        class Rows(nn.Module):
            def __init__(self):
                super().__init__()
                self.count = 5

            # mugraph: x=f32[9, 40]
            def forward(self, x):
                rows = []
                for i in range(self.count):
                    rows.append(torch.softmax(x[i], -1))
                return torch.stack(rows)
        """)
    )
    assert "self.count == 5" in region.guards


def test_a_recurrence_is_no_region(regions: Regions) -> None:
    """What one iteration computes the next one reads: its body is a region, made once for all."""
    region = only(
        regions("""
        # mugraph: x=f32[7, 4, 8], w=f32[8, 8]
        def states(x, w):
            made, h = [], torch.zeros(4, 8)
            for i in range(7):
                h = torch.tanh(x[i] @ w + h @ w)
                made.append(h)
            return torch.stack(made)
        """)
    )
    assert region.text == "h = torch.tanh(x[i] @ w + h @ w)"


def test_unlike_iterations_are_no_region(regions: Regions) -> None:
    """Each has a matrix of its own, that is no part of one tensor."""
    region = only(
        regions("""
        # mugraph: x=f32[4, 8], a=f32[8, 8], b=f32[8, 8]
        def mixed(x, a, b):
            made = []
            for w in (a, b):
                made.append(torch.softmax(x @ w, -1))
            return torch.stack(made)
        """)
    )
    assert region.text == "torch.softmax(x @ w, -1)"


def test_a_list_that_others_see_is_left(regions: Regions) -> None:
    """It was there before, is read later, or is kept: what is appended stays the user's code."""
    found = regions("""
        # mugraph: x=f32[6, 8], kept=[]
        def given(x, kept):
            for i in range(6):
                kept.append(torch.softmax(x[i], -1))
            return torch.stack(kept)

        # mugraph: x=f32[6, 8]
        def returned(x):
            kept = []
            for i in range(6):
                kept.append(torch.softmax(x[i], -1))
            return torch.stack(kept), kept

        # mugraph: x=f32[6, 8]
        def read_later(x):
            kept = []
            for i in range(6):
                kept.append(torch.softmax(x[i], -1))
            y = torch.stack(kept)
            print(len(kept))
            return y
        """)
    assert found
    assert not any("kept = []" in region.text or "for i" in region.text for region in found)


def test_an_iteration_that_may_be_skipped_is_no_region(regions: Regions) -> None:
    found = regions("""
        # mugraph: x=f32[6, 8]
        def some(x):
            kept = []
            for i in range(6):
                if i == 4:
                    continue
                kept.append(torch.softmax(x[i], -1))
            return torch.stack(kept)
        """)
    assert not any("for i" in region.text for region in found)


def test_as_many_iterations_as_a_size_says(regions: Regions) -> None:
    """At each size of its range the loop is another program, its body is one. A loop beside it stays with what stacks
    its parts."""
    found = regions("""
        # mugraph: b=2..16, x=f32[b, 4, 8]
        def each(x):
            kept = []
            for i in range(x.shape[0]):
                kept.append(torch.softmax(x[i], -1))
            return torch.stack(kept)

        # mugraph: b=2..16, x=f32[b, 4, 8]
        def heads(x):
            kept = []
            for i in range(4):
                kept.append(torch.softmax(x[:, i], -1))
            return torch.stack(kept)
        """)
    body, heads = found
    assert body.text == "torch.softmax(x[i], -1)"
    assert "for i in range(4)" in heads.text
    assert heads.dynamic is not None


def test_an_iterator_is_moved_on(regions: Regions) -> None:
    """A kernel in place of the loop would leave it where it was; a list is read again each time."""
    found = regions("""
        # mugraph: x=f32[6, 8]
        def rest(x):
            numbers = iter(range(6))
            print(next(numbers))
            kept = []
            for i in numbers:
                kept.append(torch.softmax(x[i], -1))
            y = torch.stack(kept)
            print(list(numbers))
            return y

        # mugraph: x=f32[6, 8]
        def in_brackets(x):
            numbers = iter(range(6))
            print(next(numbers))
            y = torch.stack([torch.softmax(x[i], -1) for i in numbers])
            print(list(numbers))
            return y

        # mugraph: x=f32[6, 8]
        def listed(x, order=(0, 1, 2)):
            kept = []
            for i in order:
                kept.append(torch.softmax(x[i], -1))
            return torch.stack(kept)
        """)
    assert [region.function for region in found] == ["rest", "listed"]
    assert found[0].text == "torch.softmax(x[i], -1)"
    assert found[1].guards == ("order == (0, 1, 2)",)


def test_a_number_of_the_loop_that_is_read_later(regions: Regions) -> None:
    region = only(
        regions("""
        # mugraph: x=f32[6, 8]
        def last(x):
            kept = []
            for i in range(6):
                kept.append(torch.softmax(x[i], -1))
            y = torch.stack(kept)
            print(i)
            return y
        """)
    )
    assert region.text == "torch.softmax(x[i], -1)"
