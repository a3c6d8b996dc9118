"""Whether a kernel's numbers are as good as the program allows: element by element, by slices, and on the whole.

What it allows is measured: `draws` are runs of the program with random errors where a right kernel has them
(roundings.Perturbed). Of each element they give a spread; the kernel's error, in spreads, may be

- 3 in the root mean square over all elements, as a kernel adds up in another order than the draws assume; 6 of fewer
  than 16, as a mean of one number has its own rounding, and that of the part that a number counts for;
- 6 in that of any slice of an output, because a slice shares errors: a row its mean's;
- 20 at any element;

or 3, 3 and 3 times what eager PyTorch's own rounding makes of it, where that is more. And errors may not lean to one
side (`leaning`): roundings of thousands of numbers even out, a factor of 1.001 or n - 1 for n does not.

Where few elements or slices are wrong, more draws are asked. An element that dominates its row's mean square is wrong
with it: in what is divided by the root, both errors are of one size and cancel in half of the draws, and in all of four
at some of millions of elements. And a row that has one error, as of a minimum that is added to many numbers, is one
number: of a thousand of them four draws have small errors at some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from mugraph.verification.roundings import SPREAD

OVERALL, SLICE, PEAK, EAGER = 3.0, 6.0, 20.0, 3.0
_LEANING = 6.0
_FEW = 16  # elements, of which a root mean square says little
_SHARE = 100  # one of so many elements is few
_PRIOR = 4.0  # draws that the neighbours of an element count for
_MORE = (12, 48)  # draws that are asked, one lot after the other
_HELD = 1 << 30  # elements of all draws; of large outputs the second lot has as many as the first


@dataclass(frozen=True)
class Compared:
    """One output of one run. All but `dtype` and `even` are float64 tensors of its shape.

    eager: exact, with eager PyTorch's roundings
    even:  a relative error that all elements may share; none where the inputs leave roundings that do not even out
    """

    result: Tensor
    exact: Tensor
    eager: Tensor
    draws: Sequence[Tensor]
    dtype: torch.dtype
    even: float | None = None

    def trouble(self) -> str | None:
        """What is wrong with the kernel's numbers; None if nothing is."""
        if float(self._known.double().mean()) < 0.5:
            return "cannot be told, because rounding alone makes most of it NaN"
        if not bool(torch.isfinite(self.result[self._known]).all()):
            return "holds NaN or infinity"
        ours, eager = self._scaled(self.result), self._scaled(self.eager)
        rms, eager_rms = float(ours.square().mean().sqrt()), float(eager.square().mean().sqrt())
        if rms > max(OVERALL if ours.numel() >= _FEW else SLICE, EAGER * eager_rms):
            return f"is wrong by {rms:.2g} times what rounding explains"
        for dim, excess, means in self._excess(ours, eager):
            if float(excess.max()) > 1:
                at = int(excess.argmax())
                return f"is wrong by {float(means[at]):.2g} times what rounding explains at {at} of dimension {dim}"
        peak = float(ours.abs().max())
        if peak > self._peak(eager):
            return f"is wrong by {peak:.2g} times what rounding explains at an element"
        return self._leaning(ours) if self.even is not None else None

    @property
    def is_at_few_places(self) -> bool:
        """Is it wrong at single elements or slices, of which a few draws may tell too small a spread?"""
        if not bool(torch.isfinite(self.result[self._known]).all()):
            return False
        ours, eager = self._scaled(self.result), self._scaled(self.eager)
        wrong = int((ours.abs() > self._peak(eager)).sum())
        if wrong:
            return wrong <= ours.numel() // _SHARE + 1
        # A slice may be one number: a row's minimum, that is added to other numbers along the row.
        slices = [(int((excess > 1).sum()), len(excess)) for _, excess, _ in self._excess(ours, eager)]
        return any(some for some, _ in slices) and all(some <= size // _SHARE + 1 for some, size in slices)

    def _excess(self, ours: Tensor, eager: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Of the slices along each dimension: their root mean squares as parts of what is allowed, and themselves."""
        for dim, count in self._slices(ours):
            if count >= _FEW:
                means, eager_means = (_means(one.square(), dim).sqrt() for one in (ours, eager))
                yield dim, means / (EAGER * eager_means).clamp_min(SLICE), means

    def _peak(self, eager: Tensor) -> float:
        return max(PEAK, EAGER * float(eager.abs().max()))

    @cached_property
    def _known(self) -> Tensor:
        """Elements at which the program has a number, whatever its roundings."""
        known = torch.isfinite(self.exact) & torch.isfinite(self.eager)
        for draw in self.draws:
            known &= torch.isfinite(draw)
        return known

    def _scaled(self, values: Tensor) -> Tensor:
        return torch.where(self._known, (values - self.exact) / self._spread, 0.0)

    @cached_property
    def _spread(self) -> Tensor:
        """The spread of each element: from its own draws and, as they are few, from those of its slices and from its
        size."""
        exact = torch.where(self._known, self.exact, 0.0)
        own = torch.zeros_like(exact)
        for draw in self.draws:
            own += torch.where(self._known, draw - exact, 0.0).square() / len(self.draws)
        size = exact.square()
        total = float(own.mean())
        if total == 0:
            prior = own
        else:
            prior = torch.full_like(own, total)
            for dim, _ in self._slices(own):
                shape = [-1 if d == dim else 1 for d in range(own.dim())]
                prior = prior * (_means(own, dim) / total).reshape(shape)
            prior = torch.maximum(prior, size * (total / max(float(size.mean()), 1e-300)))
        spread = (len(self.draws) * own + _PRIOR * prior) / (len(self.draws) + _PRIOR)
        info = torch.finfo(self.dtype)
        # What is smaller than a float32 can be is flushed to zero.
        tiny = max(info.tiny * info.eps / 2, torch.finfo(torch.float32).tiny)
        rounding = (exact.abs() * (SPREAD * info.eps / 2)).clamp_min(tiny)
        return torch.maximum(spread.sqrt(), rounding)

    def _leaning(self, ours: Tensor) -> str | None:
        """The part of the errors that is proportional to the numbers (a factor), or the same everywhere (an offset):
        its distance from zero, compared with the distance in the draws, and with that of right results.

        What is rounded to nearest may lean in types of 16 bits: equal numbers are rounded alike, and a row's constant
        that is less than half a unit of what it is added to is lost in all of the row.
        """
        draws, right = [self._scaled(draw) for draw in self.draws], [self._scaled(self.eager)]
        if self.dtype.itemsize < torch.float32.itemsize:
            nearest = self.exact.to(self.dtype).to(torch.float64)
            right.append(self._scaled(torch.where(nearest.isfinite(), nearest, self.exact)))
        size = torch.where(self._known, self.exact, 0.0) / self._spread
        ones = torch.where(self._known, 1.0, 0.0).to(size.dtype)
        for what, along in (("too large by the factor 1 + ", size), ("too large by ", ones)):
            even = (self.even or 0.0) * (1.0 if along is size else float(size.square().mean().sqrt()))
            shared = 1.0
            for dim, count in self._slices(ours):
                if count < _FEW:
                    continue
                weight = _means(along.square(), dim).clamp_min(1e-300) * count
                lean, *leans = (_means(one * along, dim) * count / weight for one in (ours, *right, *draws))
                rights, others = torch.stack(leans[: len(right)]), leans[len(right) :]
                spread = float(torch.stack([x.square() * weight for x in others]).mean().sqrt())
                shared = max(shared, spread)
                allowed = torch.maximum(EAGER * rights.abs().amax(0), _LEANING * max(spread, 1.0) * weight.rsqrt())
                excess = lean.abs() - even - allowed
                if float(excess.max()) > 0:
                    at = int(excess.argmax())
                    return f"is wrong: at {at} of dimension {dim} it is {_by(what, float(lean[at]))} on the whole"
            weight = max(float(along.square().sum()), 1e-300)
            lean, *leans = (float((one * along).sum()) / weight for one in (ours, *right, *draws))
            rights, others = leans[: len(right)], leans[len(right) :]
            spread = max(shared * weight**-0.5, (sum(x * x for x in others) / len(others)) ** 0.5)
            if ours.numel() >= _FEW and abs(lean) > even + max(EAGER * max(map(abs, rights)), _LEANING * spread):
                return f"is wrong: it is {_by(what, lean)} on the whole"
        return None

    def _slices(self, values: Tensor) -> Iterator[tuple[int, int]]:
        """Dimensions, and how many elements a slice across one has."""
        for dim, size in enumerate(values.shape):
            if 1 < size < values.numel():
                yield dim, values.numel() // size


def trouble_by_more(compared: Compared, drawn: Callable[[int], Tensor]) -> str | None:
    """What is wrong with the kernel's numbers, by as many draws as it takes to tell. drawn: the draw of a number"""
    trouble = compared.trouble()
    for lot in _MORE:
        if trouble is None or not compared.is_at_few_places:
            break
        first = len(compared.draws)
        held = max(_MORE[0], _HELD // max(1, compared.exact.numel()) - first)
        more = [drawn(number) for number in range(first, first + min(lot, held))]
        compared = replace(compared, draws=[*compared.draws, *more])
        trouble = compared.trouble()
    return trouble


def _by(what: str, lean: float) -> str:
    return f"{what}{lean:.1e}" + ("" if "factor" in what else " times what rounding explains")


def _means(values: Tensor, dim: int) -> Tensor:
    """Of the slices along a dimension."""
    return values.mean([d for d in range(values.dim()) if d != dim])
