"""Why what is right may be rejected: the rules that the verifier keeps beside equality, by its own words.

A reason that is none of these is not explained, and fails the tests.
"""

from __future__ import annotations

import re

EXPLANATIONS = {
    # What cannot be launched, though it could be computed.
    r"is \d+, no power of two": "a tile is a power of two, as Triton's ranges are",
    r"batch axis .* a dot takes 1": "a tensor core's product has no batch",
    r"is no dimension of a product": "a looped axis is not packed with another one",
    r"closes loop .* a loop inside it": "registers hold no tile for each iteration of a loop inside",
    r"over the limit of": "a tile is too large",
    r"blocks would write the same elements": "two blocks store the same elements, if the same numbers",
    r"reduces grid axis": "an axis on the grid is reduced, if it is one block",
    r"an accumulator is missing on the way": "iterations store the same elements, if the same numbers",
    # What is said twice and not alike, though nothing comes of it.
    r"which is an input or already written": "a kernel that runs twice",
    r"is stored more than once": "one tensor, two stores",
    r"takes \w+ to be .*; it is": "memory between kernels is declared in two ways that reach the same elements",
    r"computes .*, not torch\.": "a library kernel's call is another one than its block graph's, if of the same result",
    r"is no operator of the block graph": "a thread graph's operator has its operands in another order",
    r"are not in the order of the block graph": "operators of a thread graph are in another order",
    r"reads \w+ before anything has written it": "an input is not listed",
    r"windows that no kernel reads it through": "the kernel graph has another window than its kernels",
    r"Invalid enum value": "memory between kernels is of a type that kernels have not",
    r"which share no finer cut": "a dimension's axes in another order, which reaches the same elements",
    r"the diagonal .* is no whole number": "a mask that starts between two diagonals",
    r"which an operand does not have": "a product's sum over an axis of one operand",
    # What holds for some numbers only.
    r"divides by zero where the program does not": "y·y/y, no number where y is 0, which no input here makes it",
}
OF_SIGNS = {
    r"differs from the program's in": "√y·√y, √(y·y), |y| for y, where y is never negative by what it is made of",
    r"divides by zero at random inputs, again": "relu(y) for y that is never negative: over a field half of it is 0",
}
"""Of the mutations in BY_SIGN alone."""
BY_SIGN = frozenset({"detour"})
"""Kinds of mutation that put in what holds for some signs only."""


def explanation(kind: str, reason: str) -> str:
    """ "" where there is none."""
    known = {**EXPLANATIONS, **(OF_SIGNS if kind in BY_SIGN else {})}
    return next((why for pattern, why in known.items() if re.search(pattern, reason)), "")
