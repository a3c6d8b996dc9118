"""The part of the shared runtime that compares kernels with PyTorch, by the rule of verification/judge.py."""

from __future__ import annotations

from mugraph.trace.pytorch.tf32 import MULTIPLIED

JUDGE = '''\
# How kernels are compared with PyTorch
def _drawn(name: str, kind: str, device: torch.device, random: torch.Generator) -> list[torch.Tensor]:
    """Inputs of a region. Besides ordinary ones: rows that are small, large, negative, positive, aside, or zero; rows
    in which the last place, the first or any counts as much as all others; rows far from zero on one side."""
    inputs = []
    for shape, strides, dtype, deviation, *more in _CASES[name][3]:
        tensor = _placed(shape, strides, dtype, device, sum(one for one in more if one != "positive"))
        _filled(tensor, deviation, random)
        if kind != "ordinary" and _is_wide(dtype) and isinstance(deviation, float) and tensor.dim() > 1:
            _made_special(tensor, kind, deviation, not inputs, random)
        is_signed = "positive" not in more  # no root or logarithm is taken of it
        inputs.append(tensor if is_signed else tensor.abs_().add_(2**-10))
    return inputs


def _placed(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, device: torch.device, at: int
) -> torch.Tensor:
    """A tensor that begins so many elements after its memory does."""
    if not at or 0 in shape:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides)) + 1
    return torch.empty((at + reach,), dtype=dtype, device=device).as_strided(shape, strides, at)


def _made_special(tensor: torch.Tensor, kind: str, deviation: float, first: bool, random: torch.Generator) -> None:
    """first: of all inputs"""
    if kind == "rows":
        for number, factor in enumerate((2**-8, 8.0, -1.0, 1.0, 1.0, 1.0, 0.0, 1.0)):
            row = tensor[..., number::8, :].mul_(factor)
            row.copy_(row.abs().mul_(factor) if number in (2, 3) else row + {4: 10.0, 5: -30.0}.get(number, 0.0))
    elif kind == "far":  # of two that are multiplied, one is above zero
        tensor.abs_().add_(8 * deviation)
        if first:
            tensor.mul_(16)
            tensor[..., ::2, :].neg_()
    else:
        for dim in (-1, -2):
            size, across = tensor.shape[dim], list(tensor.shape)
            across[dim] = 1
            places = torch.randint(size, across, device=tensor.device, generator=random)
            for number, place in enumerate((size - 1, 0)):
                places[..., number::3, :] = place
                places[..., number::3] = place
            tensor.scatter_(dim, places, deviation * size**0.5)


def _is_wide(dtype: torch.dtype) -> bool:
    """Is it a floating-point type that PyTorch computes in? Those of eight bits are stored."""
    return dtype.is_floating_point and dtype.itemsize > 1


_aten = torch.ops.aten
_MULTIPLIED = __MULTIPLIED__
"""The operators that may take TF32, by the setting, and which of their operands they multiply."""


class _Doubles(TorchDispatchMode):
    """Computes in double precision, whatever type is asked for; if it is given random numbers, with errors of the size
    of a rounding to that type, and of what a sum in float32 may lose, and of a rounding to TF32 where that is taken.
    usual: the type of what an operator makes. settings: of TF32, that are on"""

    def __init__(self, random: torch.Generator | None, usual: torch.dtype, settings: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.random, self.usual = random, usual
        self.multiplied = {getattr(_aten, name): at for one in settings for name, at in _MULTIPLIED[one].items()}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and to hide from PyTorch's compiler would import it

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.random is not None and func.overloadpacket in self.multiplied:
            args = list(args)
            for at in self.multiplied[func.overloadpacket]:
                kind, args[at] = getattr(args[at], "kind", self.usual), args[at].clone()
                _add_errors(args[at], 2**-11 if kind == torch.float32 else 0.0, kind, self.random)
                args[at].kind = kind
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.is_floating_point()]
        asked, kwargs = (kwargs or {}).get("dtype"), dict(kwargs or {})
        if asked is not None and asked.is_floating_point:
            kwargs["dtype"] = torch.float64 if _is_wide(asked) else asked
        else:
            kinds = [getattr(t, "kind", self.usual) for t in given if t.dim() or len(given) == 1]
            asked = functools.reduce(torch.promote_types, kinds) if kinds else self.usual
        asked = self.usual if asked == torch.float64 else asked
        made = func(*args, **kwargs)
        for result in tree_leaves(made):
            if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
                same = [t for t in given if t.untyped_storage().data_ptr() == result.untyped_storage().data_ptr()]
                moved = func.overloadpacket in _MOVES and (not given or asked == getattr(given[0], "kind", None))
                if self.random is not None and not moved and (not same or same[0] is result) and not _are_whole(result):
                    longest = max([1, *(size for t in given for size in t.shape)])
                    _perturb(result, asked, longest, self.random)
                result.kind = asked
        return made


def _are_whole(tensor: torch.Tensor) -> bool:
    """Such numbers are exact, as what has been rounded is."""
    return bool((tensor == tensor.round()).all())


_MOVES = (_aten.clone, _aten._to_copy, _aten.copy_, _aten.cat)


def _perturb(tensor: torch.Tensor, kind: torch.dtype, longest: int, random: torch.Generator) -> None:
    """With errors of the size of a rounding: its root mean square is 0.41 of the largest."""
    _add_errors(tensor, max(torch.finfo(kind).eps / 2, 2**-24 * longest**0.5), kind, random)


def _add_errors(tensor: torch.Tensor, size: float, kind: torch.dtype, random: torch.Generator) -> None:
    """size: the largest, relative to each element"""
    noise = torch.rand(tensor.shape, dtype=torch.float64, device=tensor.device, generator=random) - 0.5
    numbers = torch.where(tensor.isfinite(), tensor, 0)  # a mask's minus infinity stays
    tensor.add_(noise.mul_(numbers.abs().clamp_min(torch.finfo(kind).tiny)), alpha=size * 0.41 * 12**0.5)


def _in_doubles(name: str, inputs: list[torch.Tensor], random: torch.Generator | None) -> tuple[torch.Tensor, ...]:
    """What a region's PyTorch code computes in double precision: exactly, or with random errors."""
    kinds = [t.dtype for t in inputs if _is_wide(t.dtype)]
    usual = max(kinds, key=lambda kind: torch.finfo(kind).eps, default=torch.get_default_dtype())
    doubles = [t.double() if t.is_floating_point() else t for t in _unwritten(name, inputs)]
    for double, tensor in zip(doubles, inputs):
        if random is not None and tensor.is_floating_point():  # what an operator loses inside itself
            _perturb(double, torch.float32, 4, random)
        double.kind = tensor.dtype if _is_wide(tensor.dtype) else usual
    with _Doubles(random, usual, _TF32.get(name.partition(",")[0], ())):
        return _ran(name, 1, doubles)


def _ran(name: str, which: int, inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The results of a region's kernels (0) or of its PyTorch code (1); and what the inputs that it writes to hold
    after it."""
    results = _several(_CASES[name][which](*inputs))
    return (*results, *(inputs[at].clone() for positions in _CASES[name][4:] for at in positions))


def _unwritten(name: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The inputs, with copies of those that the region writes to: who runs next is to find them as they are."""
    inputs = [*inputs]
    for at in {at for positions in _CASES[name][4:] for at in positions}:
        own = inputs[at]
        inputs[at] = _placed(own.shape, own.stride(), own.dtype, own.device, own.storage_offset()).copy_(own)
    return inputs


def _several(results: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return (results,) if isinstance(results, torch.Tensor) else tuple(results or ())


def _code_trouble(
    got: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor, draws: list[torch.Tensor], known: torch.Tensor
) -> str | None:
    """What is wrong with numbers of eight bits: where roundings before decide between two of them an element may be a
    step off, and no more elements may be than the roundings of PyTorch's own sizes make."""
    ours, theirs, truth, *others = (t.double() for t in (got, expected, exact, *draws))
    if not ours[known].isfinite().all():
        return "it holds NaN or infinity"
    step = torch.ones_like(truth)
    if got.is_floating_point():
        info, size = torch.finfo(got.dtype), torch.maximum(ours.abs(), truth.abs())
        step = (size * info.eps).clamp_min(info.tiny * info.eps)
    if ((ours - truth).abs() > step)[known].any():
        return "an element is wrong"
    count, own, *drawn = ((t != truth)[known].sum().item() for t in (ours, theirs, *others))
    if count > 3 * max(own, sum(drawn) / len(drawn)) + 4 + known.sum().item() / 1000:
        return f"{count} numbers are a step off"
    return None


def _trouble(
    got: torch.Tensor,
    expected: torch.Tensor,
    exact: torch.Tensor,
    draws: list[torch.Tensor],
    known: torch.Tensor,
    longest: int,
    even: bool,
) -> str | None:
    """What is wrong with an output, element by element, where all have numbers (`known`). Random errors of PyTorch's
    own sizes (`draws`) say how far an element may be from exact, its spread. In spreads the kernel's error may be 3 in
    the root mean square, 6 in that of a slice or of few, 20 at an element; or 3 times PyTorch's own there. And it may
    not lean to one side, if the roundings of many numbers even out (`even`): not where one input makes up most of each
    result, as its rounding is then shared by many."""
    if got.dtype.itemsize == 1 and got.dtype != torch.bool:
        return _code_trouble(got, expected, exact, draws, known)
    if not got.is_floating_point():
        return None if torch.equal(got, expected) else "its numbers are others"
    if not got[known].isfinite().all():
        return "it holds NaN or infinity"
    own = sum((torch.where(known, draw - exact, 0).square() for draw in draws), torch.zeros_like(exact)) / len(draws)
    total, dims = own.mean().clamp_min(1e-300), range(own.dim())
    near = functools.reduce(torch.mul, [own.mean([d for d in dims if d != dim], True) / total for dim in dims], total)
    info, size = torch.finfo(got.dtype), torch.where(known, exact, 0)
    least = max(info.tiny * info.eps / 2, torch.finfo(torch.float32).tiny)
    near = torch.maximum(near, size.square() * (total / size.square().mean().clamp_min(1e-300)))
    spread = torch.maximum(((own + near) / 2).sqrt(), (size.abs() * info.eps * 0.2).clamp_min(least))
    # What is rounded to nearest may lean in types of 16 bits, where equal numbers are rounded alike
    best = exact.to(got.dtype) if got.dtype.itemsize < 4 else expected
    best = torch.where(best.isfinite(), best, expected)
    each = got, expected, best, *draws
    ours, theirs, nearest, *others = (torch.where(known, t.double() - exact, 0) / spread for t in each)
    for number, few in [(None, 0)] + [(dim, 16) for dim in dims if 1 < got.shape[dim] < got.numel()]:
        across = None if number is None else [d for d in dims if d != number]
        error, own = (t.square().mean(across).sqrt() for t in (ours, theirs))
        limit = (3 * own).clamp_min(3 if number is None and got.numel() >= 16 else 6)
        if number is None or got.numel() // got.shape[number] >= few:
            if (error > limit).any():
                return f"it is {(error / limit).max().item():.2g} times as wrong as it may be"
    if ours.abs().max() > max(20, 3 * theirs.abs().max().item()):
        return "an element is wrong"
    for along in (size / spread, torch.ones_like(size)) if even else ():
        weight = along.square().sum().clamp_min(1e-300)
        lean, own, near, *rest = (((t * along).sum() / weight).abs().item() for t in (ours, theirs, nearest, *others))
        shared = 2**-24 * (8 + longest / 32) * ((size / spread).square().sum() / weight).sqrt().item()
        if got.numel() >= 16 and lean > 3 * max(own, near) + 6 * max(*rest, weight.item() ** -0.5) + shared:
            return "its errors lean to one side"
    return None


def _errors(name: str, device: torch.device) -> list[tuple[float, str | None]]:
    """As `_errors_now`, with the settings that the region's kernels rely on: where they take TF32, so does the
    original. Whether libraries' kernels take it elsewhere is PyTorch's own setting, of the original as well."""
    settings = _TF32.get(name.partition(",")[0], ())
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = "cudnn" in settings, "cublas" in settings
    try:
        return _errors_now(name, device)
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def _errors_now(name: str, device: torch.device) -> list[tuple[float, str | None]]:
    """Of each output: how far the kernel is from what PyTorch computes in double precision on ordinary inputs, over its
    largest value; and what is wrong with it on those or others, if anything."""
    specs = _CASES[name][3]
    longest = max([1, *(size for spec in specs for size in spec[0])])
    errors: list[float] = []
    troubles: dict[int, str] = {}
    for kind in ("ordinary", "rows", "ends", "far"):
        random = torch.Generator(device).manual_seed(0)
        inputs = _drawn(name, kind, device, random)
        with torch.no_grad():
            got, expected = (_ran(name, which, _unwritten(name, inputs)) for which in (0, 1))
            exact = _in_doubles(name, inputs, None)
            draws = [_in_doubles(name, inputs, random) for _ in range(4)]
        for number, (one, other, truth, *drawn) in enumerate(zip(got, expected, exact, *draws)):
            scale = truth.double().abs().max().clamp_min(1e-30)
            if kind == "ordinary":
                errors.append(((one.double() - truth.double()).abs().max() / scale).item())
            known = functools.reduce(torch.logical_and, (t.double().isfinite() for t in (truth, other, *drawn)))
            if _is_wide(one.dtype):  # whether what is next to the largest number is rounded to it, no digit says
                info = torch.finfo(one.dtype)
                known &= truth.abs() < info.max * (1 - 8 * info.eps)
            if kind == "ordinary" and known.double().mean() < 0.5:
                trouble = "there are too few numbers to compare"
            else:
                trouble = _trouble(one, other, truth, drawn, known, longest, even=kind != "ends")
            if trouble is not None:
                troubles.setdefault(number, f"on {kind} inputs {trouble}")
    return [(error, troubles.get(number)) for number, error in enumerate(errors)]
'''.replace("__MULTIPLIED__", repr(MULTIPLIED))
