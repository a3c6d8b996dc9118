"""Lists and dicts that a program changes after a region has read them: a guard that is written of what they are in the
end would take the kernel in other calls."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions

STEPS = """
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            {made}
            for step in range(3):
                {before}
                x = torch.softmax(torch.tanh(x @ w) * {read}, -1)
                {after}
            return x
"""
CHANGED = {
    "the length of a list": ("kept = []", "kept.append(step)", "len(kept)", "pass"),
    "a list's last number": ("kept = [2.0]", "pass", "kept[-1]", "kept.append(3.0)"),
    "the length of a dict": ("kept = {}", "kept[step] = w", "len(kept)", "pass"),
    "a number in a dict": ("kept = {'by': 2.0}", "pass", "kept['by']", "kept['by'] = 3.0"),
    "a list in a dict": ("kept = {'by': [2.0]}", "pass", "len(kept['by'])", "kept['by'].append(w)"),
    "a number in a long list": ("kept = [2.0] * 40", "pass", "sum(kept)", "kept[step] = 3.0"),
    "a number in a very long list": ("kept = [2.0] * 5000", "pass", "sum(kept)", "kept[step] = 3.0"),
    "a long list": ("kept = [w] * 40", "kept.pop()", "len(kept)", "pass"),
}


@pytest.mark.parametrize(("made", "before", "read", "after"), CHANGED.values(), ids=CHANGED.keys())
def test_there_is_no_kernel_for_what_is_no_more(
    made: str, before: str, read: str, after: str, regions: Regions
) -> None:
    found = regions(STEPS.format(made=made, before=before, read=read, after=after))
    told = [one for one in found if any("kept" in guard for guard in one.guards)]
    assert len(told) <= 1, "only of the last step: what it reads stays as it is"


SAME = {
    "never changed": ("kept = [2.0]", "pass", "kept[-1]", "pass"),
    "another is changed": ("kept, other = [2.0], []", "pass", "kept[-1]", "other.append(step)"),
    "changed before": ("kept = []; kept.append(2.0)", "pass", "kept[0]", "pass"),
}


@pytest.mark.parametrize(("made", "before", "read", "after"), SAME.values(), ids=SAME.keys())
def test_what_is_as_it_was_may_be_read(made: str, before: str, read: str, after: str, regions: Regions) -> None:
    found = regions(STEPS.format(made=made, before=before, read=read, after=after))
    assert any("kept" in region.text for region in found)
