"""The part of the shared runtime that remembers what a region's test said no to. Code that is called with objects of
several widths has a kernel for each, and most of what is asked of these is no.

A no costs time, never a result. What is remembered is the question: objects, dictionaries that lead from them to what
the test reads, code that ran, what tensors were like. Where all of it is as it was, so is the answer, whatever the
reason was.
"""

from __future__ import annotations

REFUSALS = '''\
# Refusals that hold until a dictionary changes
class _Refusal(NamedTuple):
    """held, dicts, version, alive: as in an _Answer; rows: what tensors were like; in_c: what compares all of it"""

    held: Any
    dicts: list[dict[Any, Any]]
    version: list[int]
    alive: list[weakref.ref[Any]]
    rows: list[tuple[Any, ...]]
    in_c: Any


_refusals: dict[str, dict[int, _Refusal]] = {}
_refused_in_c: dict[str, dict[int, Any]] = {}
_differ_in_c: dict[str, dict[int, Any]] = {}
_refused_at: dict[tuple[str, int], int] = {}
_in_vain: dict[tuple[str, int], int] = {}
_MOST_REFUSED = 8  # kinds of tensors with one object; attempts in a row of which none lasts


def _learn_no(region: str, others: Callable[..., object], *given: Any) -> bool:
    """After a region's test said no of these arguments: remembers that, where changes can be told. Always False.
    others: what is asked at every call. Where it does not hold, that is remembered apart (`_NAME_differs`): it may hold
    the next time."""
    if _dynamo() or not _native or _version is None or _grad_enabled():
        return False
    if any([asked() for asked in _ASKED]) or forward_ad._current_level >= 0:
        return False
    reads = _reads.get(region) or _reads.setdefault(region, _what_it_reads(region))
    root = min(reads.roots, default=-1)
    key = (region, id(given[root]) if root >= 0 else 0)
    if key in _asking or _in_vain.get(key, 0) >= _MOST_REFUSED:
        return False
    if len(_in_vain) > 1000:
        _in_vain.clear()
        _refused_at.clear()
    _in_vain[key] = _in_vain.get(key, 0) + 1
    try:
        known = _still_refused(region, reads, key[1], given)
        if known or _remember_refusal(region, reads, root, others, given):
            del _in_vain[key]
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError, StopIteration):
        _in_vain[key] = _MOST_REFUSED  # something is of a class of its own, or is not there
    return False


def _still_refused(region: str, reads: _Reads, key: int, given: tuple[Any, ...]) -> bool:
    """Whether the object was refused before and no dictionary has changed in truth: the tensors' kind is added."""
    known = _refusals.setdefault(region, {}).get(key)
    if known is None:
        return False
    time = known.held.now()  # before what is asked next
    if [sum(map(_version, known.dicts))] != known.version:
        return False
    known.held.at(time)
    if len(known.rows) < _MOST_REFUSED and not known.in_c(*given):
        known.rows.append(_row_of([_found(path, given, {}, {}, False) for path in reads.tensors]))
    return True


def _remember_refusal(
    region: str, reads: _Reads, root: int, others: Callable[..., object], given: tuple[Any, ...]
) -> bool:
    """Whether it is remembered from now on. Where code is not what was analysed, nothing of it is called."""
    dicts: dict[int, dict[Any, Any]] = {}
    passed: dict[int, Any] = {}
    modules, _, tensors = (
        [_found(path, given, dicts, passed, False) for path in paths]
        for paths in (reads.modules, reads.objects, reads.tensors)
    )
    relied, seen = [_worlds[region]], _seen.get((region, id(modules[0]))) if modules else None
    if seen is not None:
        relied.append(seen)
    holds = [*map(_holds_now, relied)]
    if any(holds) and not all(holds):
        return False  # the world may be that of other things
    differs = any(holds) and not others(*given)
    dicts |= {id(own): own for one in relied for own in one.dicts}
    hooks = [*_HOOKS]
    for one in passed.values():
        if issubclass(type(one), torch.nn.Module):
            dicts |= {id(vars(one)[place]): vars(one)[place] for place in _PLACES}
            hooks += _HOOKED(vars(one))
    assert not any(hooks) and _copies and all(type(own) is dict for own in dicts.values())
    key, now = id(given[root]) if root >= 0 else 0, sum(map(_version, dicts.values()))
    if _refused_at.get((region, key)) != now:  # something changes all the time, perhaps
        _refused_at[region, key] = now
        return False
    held = _native.Held((), hooks, *_as_now([one.always for one in relied]), [*dicts.values()])
    time = held.now()
    version, rows = [sum(map(_version, dicts.values()))], [_row_of(tensors)]
    if _asked_again(region, key, given):
        return False
    roots = tuple((at, given[at]) for at in sorted(reads.roots))
    alive = [weakref.ref(thing, _forgets_refusal(region, key)) for _, thing in roots]
    read = tuple((-1, one) if path.steps else (path.argument, None) for path, one in zip(reads.tensors, tensors))
    known = _refusals.setdefault(region, {})
    if len(known) > 1000:
        for one in known, _refused_in_c[region], _differ_in_c[region]:
            one.clear()
    in_c = _native.Known(held, _native.Fit(rows), roots, tuple(passed.values()), read)
    known[key] = _Refusal(held, [*dicts.values()], version, alive, rows, in_c)
    _refused_in_c.setdefault(region, {}).pop(key, None)
    _differ_in_c.setdefault(region, {}).pop(key, None)
    (_differ_in_c if differs else _refused_in_c)[region][key] = in_c
    held.at(time)
    for kind, refused in ("refused", _refused_in_c), ("differs", _differ_in_c):
        one = refused[region]
        _names[f"_{region}_{kind}"] = _native.Asked(one, root) if root >= 0 else one.get(key, _unknown)
    return True


def _holds_now(one: _World | _Seen) -> bool:
    return bool(one.version) and [sum(map(_version, one.dicts))] == one.version and _as_ever(one.always)


def _row_of(tensors: list[torch.Tensor]) -> tuple[Any, ...]:
    """What a Fit compares, of calls without gradients."""
    assert all([type(one) in _PLAIN and not one.is_nested for one in tensors])
    row = _likeness(*tensors), True, _alike_in_c(*tensors)
    assert row[0] is not None
    return row


def _as_now(relied: list[_Always]) -> tuple[list[Any], list[Any], list[Any]]:
    """What is always compared, with what it is now, which may not be what it was when the region was analysed."""
    functions = {id(one): one for some in relied for one, *_ in some.functions}
    kinds = {id(one): one for some in relied for one, *_ in some.kinds}
    others = [(read, those, [*map(read, those)]) for some in relied for read, those, _ in some.others]
    return [_code_of(one) for one in functions.values()], [(one, *_KIND(one)) for one in kinds.values()], others


def _code_of(function: Any) -> tuple[Any, ...]:
    code, defaults, keywords = _FIXED(function)
    return function, code, defaults, keywords and {**keywords}


def _forgets_refusal(region: str, key: int) -> Callable[[object], None]:
    def forget(_: object) -> None:
        _refused_in_c[region].pop(key, None)
        _differ_in_c[region].pop(key, None)
        _refusals[region].pop(key, None)

    return forget


for _kept in "refused", "differs":
    _names.update({f"_{region}_{_kept}": _unknown for region in _PATHS})
'''
