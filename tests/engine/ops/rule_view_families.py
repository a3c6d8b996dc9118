"""Arguments of the calls that put elements elsewhere and keep them: views, copies, slices, concatenations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.engine.ops.rule_draws import Drawn, Indices, Rng, T, drawn, shape, some
from tests.engine.ops.rule_pointwise_families import unary


def view(rng: Rng) -> Drawn:
    return rng.choice((
        drawn(T((4, 6)), 2, 2, -1), drawn(T((4, 6)), (24,)), drawn(T((4, 6)), [2, 12]), drawn(T((2, 3, 4)), 6, 4),
    ))  # fmt: skip


def reshape(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((4, 6)), (2, -1)), drawn(T((4, 6)), shape=(8, 3)), drawn(T((1, 6)), (6,))))


def as_other(rng: Rng) -> Drawn:
    return drawn(T((4, 6)), T((2, 2, 6)))


def flatten(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((2, 3, 4))), drawn(T((2, 3, 4)), 1), drawn(T((2, 3, 4)), start_dim=0, end_dim=-2)))


def unflatten(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((4, 6)), 1, (2, 3)), drawn(T((4, 6)), -2, (-1, 2))))


def unsqueeze(rng: Rng) -> Drawn:
    of = shape(rng, 1, 3)
    at = rng.randrange(-len(of) - 1, len(of) + 1)
    return rng.choice((drawn(T(of), at), drawn(T(of), dim=at)))


def squeeze(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((1, 3, 1))), drawn(T((1, 3, 1)), -1), drawn(T((1, 3, 1)), dim=1),
                       drawn(T((1, 3, 1)), (0, 2))))  # fmt: skip


def casts(*others: Any) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        args, kwargs = rng.choice(others or (((), {}),))
        return drawn(T(shape(rng), exact=True), *args, **kwargs)

    return draw


to = casts(
    ((torch.float32,), {}), ((), {"dtype": torch.float32}), (("cpu",), {}), ((torch.float32, True), {}),
    ((T((2,)),), {}), ((torch.float16,), {}), ((), {"dtype": torch.bfloat16, "copy": True}),
)  # fmt: skip


def transpose(rng: Rng) -> Drawn:
    of = shape(rng, 1)
    i, j = (rng.randrange(-len(of), len(of)) for _ in range(2))
    return drawn(T(of), i, j)


def matrix(rng: Rng) -> Drawn:
    return drawn(T(shape(rng, 2, 2)))


def at_least_matrix(rng: Rng) -> Drawn:
    return drawn(T(shape(rng, 2)))


def permute(rng: Rng) -> Drawn:
    of = shape(rng)
    order = tuple(rng.sample(range(len(of)), len(of)))
    order = tuple(i - len(of) if rng.random() < 0.3 else i for i in order)
    return drawn(T(of), order)


def movedim(rng: Rng) -> Drawn:
    of = shape(rng, 3, 4)
    count = rng.randint(1, 3)
    ends = [tuple(rng.sample(range(len(of)), count)) for _ in range(2)]
    return drawn(T(of), *ends) if rng.random() < 0.5 else drawn(T(of), ends[0][0] - len(of), ends[1][0])


def expand(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((3, 1)), 2, -1, 4), drawn(T((1, 4)), (3, 4)), drawn(T((4,)), (3, -1))))


def broadcast_to(rng: Rng) -> Drawn:
    return drawn(T((3, 1)), rng.choice(((3, 4), (2, 3, 4))))


def expand_as(rng: Rng) -> Drawn:
    return drawn(T((3, 1)), T((2, 3, 4)))


def repeat_interleave(rng: Rng) -> Drawn:
    of = shape(rng)
    return drawn(T(of), rng.choice((1, 2, 3)), **some(rng, dim=rng.randrange(-len(of), len(of))))


def repeat(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((3, 4)), 2, 1), drawn(T((3, 4)), (2, 1, 3)), drawn(T((1, 4)), 3, 2)))


def tile(rng: Rng) -> Drawn:
    return rng.choice((drawn(T((3, 4)), (2,)), drawn(T((3, 4)), (2, 1, 3)), drawn(T((4,)), (2, 3))))


def getitem(rng: Rng) -> Drawn:
    whole = slice(None)
    index = rng.choice((
        None, (whole, None), (Ellipsis, None), (None, Ellipsis, 0), (whole, slice(0, 4), 0), (slice(0, 99), Ellipsis),
        (Ellipsis, -1), (whole, whole, whole), (), slice(None, None, 1), (1, slice(1, 3)), (slice(1, 3), None, 2),
        (Ellipsis, slice(1, None, 2), 0), slice(-1, None), (-2, Ellipsis, None), (slice(None, None, 2), slice(2)),
    ))  # fmt: skip
    rows = rng.choice((Indices((2,), 3, -3), (Indices((3, 2), 3, -3), Ellipsis), (Indices((1,), 3), whole)))
    if rng.random() < 0.3:
        return rng.choice((drawn(T((3, 4, 1)), rows), drawn(T((2, 4)), (whole, Indices((3,), 4, -4)))))
    return drawn(T((3, 4, 1)), index)


def index_select(rng: Rng) -> Drawn:
    of = list(shape(rng))
    dim = rng.randrange(len(of))
    of[dim] = max(2, of[dim])
    index = Indices((rng.choice((1, 2, 5)),), of[dim])
    return rng.choice((drawn(T(tuple(of)), dim - len(of), index), drawn(T(tuple(of)), dim=dim, index=index)))


def embedding(rng: Rng) -> Drawn:
    rows = rng.choice((2, 5, 8))
    return drawn(Indices(shape(rng, 0, 3), rows), T((rows, rng.choice((1, 3, 4)))), **some(rng, padding_idx=1))


def narrow(rng: Rng) -> Drawn:
    start = rng.randint(-6, 4)
    return drawn(T((3, 6)), 1, start, rng.randint(1, 6 - start % 6))


def select(rng: Rng) -> Drawn:
    return drawn(T((3, 6)), rng.choice((-1, 1)), rng.randint(-6, 5))


def several(rng: Rng, results: int, *args: Any, **kwargs: Any) -> Drawn:
    return Drawn(args, kwargs, results, rng.randrange(results))


def chunk(rng: Rng) -> Drawn:
    count = rng.randint(1, 5)
    return several(rng, len(torch.empty(6).chunk(count)), T((2, 6)), count, dim=-1)


def split(rng: Rng) -> Drawn:
    if rng.random() < 0.5:
        return several(rng, 3, T((6, 2)), (1, 3, 2))
    size = rng.randint(1, 7)
    return several(rng, -(-6 // size), T((2, 6)), size, rng.choice((1, -1)))


def split_with_sizes(rng: Rng) -> Drawn:
    return several(rng, 3, T((2, 6)), (4, 1, 1), 1)


def tensor_split(rng: Rng) -> Drawn:
    return several(rng, 3, T((2, 7)), rng.choice((3, (2, 5))), dim=1)


def unbind(rng: Rng) -> Drawn:
    return several(rng, 3, T((3, 4))) if rng.random() < 0.5 else several(rng, 4, T((3, 4)), -1)


def cat(rng: Rng) -> Drawn:
    tensors = tuple(T((2, rng.choice((2, 4, 6)))) for _ in range(rng.randint(1, 3)))
    return Drawn((tensors,), {rng.choice(("dim", "axis")): rng.choice((1, -1))}, summed=True)


def stack(rng: Rng) -> Drawn:
    return Drawn((tuple(T((2, 3)) for _ in range(rng.randint(1, 4))), rng.randint(-3, 2)), {}, summed=True)


def hstack(rng: Rng) -> Drawn:
    rows = rng.random() < 0.3
    tensors = tuple(T((rng.choice((2, 4)),) if rows else (2, rng.choice((2, 4)), 3)) for _ in range(2))
    return Drawn((tensors,), {}, summed=True)


def columns(rng: Rng) -> Drawn:
    return Drawn((tuple(T((3, rng.choice((2, 4)))) for _ in range(rng.randint(1, 3))),), {}, summed=True)


def vstack(rng: Rng) -> Drawn:
    return Drawn((tuple(T((rng.choice((2, 4)), 3)) for _ in range(rng.randint(1, 3))),), {}, summed=True)


def roll(rng: Rng) -> Drawn:
    return rng.choice((
        drawn(T((4, 6)), rng.choice((2, -2, 3, 0)), 1), drawn(T((4, 6)), (2, -3), (0, 1)),
        drawn(T((2, 4, 6)), shifts=(rng.randint(-9, 9),), dims=(-2,)),
    ))  # fmt: skip


def flip(rng: Rng) -> Drawn:
    return rng.choice((
        drawn(T((4, 5)), (rng.randrange(-2, 2),)), drawn(T((4, 5)), (0, 1)), drawn(T((2, 1, 3)), dims=(1, 2)),
    ))  # fmt: skip


def turned(rng: Rng) -> Drawn:
    return drawn(T((rng.choice((1, 3)), 4, *rng.choice(((), (2,))))))


def pixel_shuffle(rng: Rng) -> Drawn:
    r = rng.choice((1, 2, 3))
    return drawn(T((*rng.choice(((), (2,))), 2 * r * r, 3, rng.choice((1, 4)))), r)


def pixel_unshuffle(rng: Rng) -> Drawn:
    r = rng.choice((1, 2, 3))
    return drawn(T((*rng.choice(((), (2,))), 2, 3 * r, rng.choice((1, 4)) * r)), r)


def patches(rng: Rng) -> Drawn:
    r, s = rng.choice((1, 2, 3)), rng.choice((1, 2))
    of = T((*rng.choice(((), (2,))), rng.choice((1, 3)), 3 * r, rng.choice((1, 4)) * s))
    return drawn(of, (r, s), stride=(r, s), **some(rng, padding=0, dilation=1))


def windows(rng: Rng) -> Drawn:
    r = rng.choice((1, 2, 3))
    of = [2, 5, 4][: rng.randint(1, 3)]
    at = rng.randrange(len(of))
    of[at] *= r
    return drawn(T(tuple(of)), rng.choice((at, at - len(of))), r, r)


def channel_shuffle(rng: Rng) -> Drawn:
    return drawn(T((2, 6, 3, 4)), rng.choice((1, 2, 3)))


def nearest(rng: Rng) -> Drawn:
    of = (2, 3, *shape(rng, 1, 2))
    if rng.random() < 0.5:
        return drawn(T(of), scale_factor=rng.choice((1, 2, 3.0)))
    return drawn(T(of), tuple(size * rng.choice((1, 2, 3)) for size in of[2:]), **some(rng, mode="nearest"))


VIEWS: dict[str, Callable[[Rng], Drawn]] = {
    "view": view, "reshape": reshape, "view_as": as_other, "reshape_as": as_other, "flatten": flatten,
    "unflatten": unflatten, "unsqueeze": unsqueeze, "squeeze": squeeze, "ravel": unary,
    "contiguous": casts(), "clone": casts(), "detach": casts(), "float": casts(), "half": casts(),
    "bfloat16": casts(), "cpu": casts(), "to": to, "type": casts(((torch.float32,), {}), ((torch.float16,), {})),
    "type_as": casts(((T((2,)),), {})),
    "transpose": transpose, "swapaxes": transpose, "swapdims": transpose, "T": matrix, "t": matrix,
    "mT": at_least_matrix, "permute": permute, "movedim": movedim, "moveaxis": movedim,
    "expand": expand, "expand_as": expand_as, "broadcast_to": broadcast_to, "repeat": repeat, "tile": tile,
    "index_select": index_select, "embedding": embedding,
    "repeat_interleave": repeat_interleave, "getitem": getitem, "narrow": narrow, "select": select, "chunk": chunk,
    "split": split, "split_with_sizes": split_with_sizes, "tensor_split": tensor_split, "unbind": unbind,
    "pixel_shuffle": pixel_shuffle, "pixel_unshuffle": pixel_unshuffle, "channel_shuffle": channel_shuffle,
    "unfold": patches,
    "interpolate": nearest, "upsample": nearest, "roll": roll, "hstack": hstack, "flip": flip,
    "fliplr": turned, "flipud": turned,
    "column_stack": columns, "vstack": vstack, "row_stack": vstack,
    "cat": cat, "concat": cat, "concatenate": cat, "stack": stack,
}  # fmt: skip
VIEWS_BY_TARGET: dict[str, Callable[[Rng], Drawn]] = {
    "Tensor.unfold": windows,
    "Tensor.reshape": view,
    "Tensor.broadcast_to": broadcast_to,
}
