"""Arguments as people write them in a comment: `x=f16[16, 4096], causal=True, b=16`; `b=1..64` is any of these. A
tensor that does not lie row by row says its strides: `q=f16[8, t, 64].stride(64, 1536, 1)`."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from mugraph.ir.ranges import SizeRange
from mugraph.trace.syntax.size_ranges import BadRange, largest_of, without_ranges

_log = logging.getLogger("mugraph.trace")

_MARK = re.compile(r"#\s*mugraph:\s*(?P<text>.*\S)\s*\Z")
_SCALAR = re.compile(r"(?<=\w)\[\s*\]")  # f32[] is a tensor without dimensions, as f32 is
_INIT = re.compile(r"(?<![\w.=(])init\s*\(")  # init(...) stands among keyword arguments, and is no value
STRIDE = "stride"
"""What a tensor's strides stand after, as those that its own method of this name gives."""
DTYPES = {
    "f16": "f16", "float16": "f16", "half": "f16", "bf16": "bf16", "bfloat16": "bf16", "f32": "f32", "float32": "f32",
    "float": "f32", "f64": "f64", "float64": "f64", "double": "f64", "i64": "i64", "int64": "i64", "long": "i64",
    "i32": "i32", "int32": "i32", "int": "i64", "i16": "i16", "int16": "i16", "i8": "i8", "int8": "i8", "u8": "u8",
    "uint8": "u8", "bool": "bool", "f8e4m3": "f8e4m3", "float8_e4m3fn": "f8e4m3", "f8e5m2": "f8e5m2",
    "float8_e5m2": "f8e5m2", "c64": "c64", "complex64": "c64",
}  # fmt: skip
_ANNOTATIONS = {
    "Float16": "f16", "BFloat16": "bf16", "Float32": "f32", "Float": "f32", "Float64": "f64", "Int64": "i64",
    "Int": "i64", "Integer": "i64", "Int32": "i32", "Int16": "i16", "Int8": "i8", "UInt8": "u8", "Bool": "bool",
    "Inexact": "f32", "Num": "f32", "Real": "f32", "Shaped": "f32",
}  # fmt: skip


class BadShapes(Exception):
    """One sentence: what is wrong with a description of arguments."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """dtype: "f16", "bf16", "f32", "i64", "bool", ... strides: in elements; None where it lies row by row"""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """Any other value, as source evaluated in the user's module."""

    text: str


Spec = TensorSpec | Expression | tuple["Spec", ...]


@dataclass(frozen=True)
class Description:
    """What the comments above one definition say. arguments: by name; init: constructor arguments, None if not said.

    sizes: integers among the arguments, which also name dimensions; of a range, the one that was picked
    ranges: sizes of which only a range is said, by name
    named:  sizes that the arguments' shapes name
    """

    arguments: Mapping[str, Spec]
    init: Mapping[str, Spec] | None
    sizes: Mapping[str, int]
    ranges: Mapping[str, SizeRange] = field(default_factory=dict[str, SizeRange])
    named: frozenset[str] = frozenset()


def comment_text(line: str) -> str | None:
    """What a line `# mugraph: ...` says; None for any other line."""
    found = _MARK.match(line.strip())
    return found["text"] if found else None


def parse_description(lines: list[str], pick: Callable[[SizeRange], int] = largest_of) -> Description:
    """Reads the texts of the comments above one definition. Raises BadShapes.

    pick: the size that stands for a range
    """
    text = ", ".join(line.rstrip(",") for line in lines)
    try:
        plain, ranges = without_ranges(text, pick)
    except BadRange as error:
        raise BadShapes(str(error)) from None
    try:
        plain = _SCALAR.sub("[()]", _INIT.sub("init=init(", plain))
        call = ast.parse(f"f({plain})", mode="eval").body
    except SyntaxError:
        raise BadShapes(f"cannot read “# mugraph: {text}”; write it like “# mugraph: x=f16[16, 4096]”") from None
    assert isinstance(call, ast.Call)
    init: Mapping[str, Spec] | None = None
    keywords: dict[str, ast.expr] = {}
    if call.args:
        raise BadShapes(f"“# mugraph: {text}” needs names: write x=f16[16, 4096], or init(dim=4096)")
    for keyword in call.keywords:
        if keyword.arg is None:
            raise BadShapes(f"“# mugraph: {text}” needs a name for each argument")
        if keyword.arg != "init":
            keywords[keyword.arg] = keyword.value
            continue
        init = _init_arguments(keyword.value)
        if init is None:
            raise BadShapes(f"“# mugraph: {text}” needs a name for each argument in init(...)")
    sizes = {
        name: value.value
        for name, value in keywords.items()
        if isinstance(value, ast.Constant) and type(value.value) is int
    }
    sizes = _with_sums(keywords, sizes)
    named = _named(keywords, sizes)
    keywords |= {name: ast.Constant(sizes[name]) for name in keywords.keys() & sizes.keys()}
    return Description({name: _spec(value, sizes) for name, value in keywords.items()}, init, sizes, ranges, named)


def _named(keywords: Mapping[str, ast.expr], sizes: Mapping[str, int]) -> frozenset[str]:
    """Names in shapes, and in what the sizes of these names are computed from."""
    found = {name for value in keywords.values() for name in _names_in_shapes(value)}
    waiting = [*found]
    while waiting:
        name = waiting.pop()
        of = ast.walk(keywords[name]) if name in sizes and name in keywords else ()
        more = {node.id for node in of if isinstance(node, ast.Name)} - found
        found |= more
        waiting += more
    return frozenset(found)


def _with_sums(keywords: Mapping[str, ast.expr], sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes, and those that are computed from them: `s=t0 + t`, or another name of one: `start=t0`."""
    found = dict(sizes)
    while True:
        more: dict[str, int] = {}
        for name, value in keywords.items():
            names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
            is_of_sizes = isinstance(value, ast.BinOp | ast.Name) and names and found.keys() >= {*names}
            if name in found or not is_of_sizes:
                continue
            try:
                more[name] = _size(value, found)
            except BadShapes as error:  # an argument that is computed in another way
                _log.debug("“%s” is no size: %s", name, error)
        if not more:
            return found
        found |= more


def _names_in_shapes(value: ast.expr) -> set[str]:
    shapes = [node.slice for node in ast.walk(value) if isinstance(node, ast.Subscript)]
    return {node.id for shape in shapes for node in ast.walk(shape) if isinstance(node, ast.Name)}


def names_in_annotation(annotation: ast.expr) -> set[str]:
    """Words of a jaxtyping annotation's shape."""
    texts = [n.value for n in ast.walk(annotation) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}


def _init_arguments(node: ast.expr) -> Mapping[str, Spec] | None:
    """Those of `init(dim=4096)`; None if it is something else."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "init") or node.args:
        return None
    named = {keyword.arg: Expression(ast.unparse(keyword.value)) for keyword in node.keywords if keyword.arg}
    return named if len(named) == len(node.keywords) else None


def parse_spec(text: str) -> Spec:
    """One argument, as in recorded shapes: "f16[16, 4096]". Raises BadShapes."""
    try:
        return _spec(ast.parse(text, mode="eval").body, {})
    except SyntaxError:
        raise BadShapes(f"cannot read the shape “{text}”; write it like f16[16, 4096]") from None


def spec_text(spec: Spec) -> str:
    """An argument as `parse_spec` reads it."""
    if isinstance(spec, TensorSpec):
        text = f"{spec.dtype}[{', '.join(map(str, spec.shape))}]" if spec.shape else spec.dtype
        return text if spec.strides is None else f"{text}.{STRIDE}({', '.join(map(str, spec.strides))})"
    if isinstance(spec, Expression):
        return spec.text
    return f"({', '.join(map(spec_text, spec))}{',' * (len(spec) == 1)})"


def _spec(node: ast.expr, sizes: Mapping[str, int]) -> Spec:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == STRIDE:
        whole = _spec(node.func.value, sizes)
        if isinstance(whole, TensorSpec):
            return _with_strides(whole, node, sizes)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in DTYPES:
        dims = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return TensorSpec(DTYPES[node.value.id], tuple(_size(dim, sizes) for dim in dims))
    if isinstance(node, ast.Name) and node.id in DTYPES and node.id not in ("float", "int", "bool"):
        return TensorSpec(DTYPES[node.id], ())
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        known = "f16, bf16, f32, f64, f8e4m3, f8e5m2, i64, i32, i8, u8, bool, c64"
        raise BadShapes(f"“{ast.unparse(node)}” names no dtype; known are {known}")
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_spec(item, sizes) for item in node.elts)
    return Expression(ast.unparse(node))


def _with_strides(spec: TensorSpec, node: ast.Call, sizes: Mapping[str, int]) -> TensorSpec:
    if len(node.args) != len(spec.shape) or node.keywords:
        raise BadShapes(f"“{ast.unparse(node)}” needs a stride for each of its {len(spec.shape)} dimensions")
    return replace(spec, strides=tuple(_size(stride, sizes) for stride in node.args))


def _size(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0:
        return node.value
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _size(node.left, sizes), _size(node.right, sizes)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub) and left >= right:
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
    if isinstance(node, ast.Name):
        raise BadShapes(f"no size is given for “{node.id}”; add “{node.id}=16” to the comment")
    raise BadShapes(f"“{ast.unparse(node)}” is no size of a dimension")


def annotated(annotation: ast.expr, sizes: Mapping[str, int]) -> TensorSpec | None:
    """The shape in a jaxtyping annotation such as `Float16[Tensor, "b 4096"]`; None if it is something else.

    Raises BadShapes where a name in it has no size.
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError as error:  # a string that is no annotation, or one that another tool reads
            _log.debug("the annotation “%s” is not read: %s", annotation.value, error)
            return None
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return annotated(annotation.left, sizes) or annotated(annotation.right, sizes)
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return None
    name = annotation.value.attr if isinstance(annotation.value, ast.Attribute) else None
    name = annotation.value.id if isinstance(annotation.value, ast.Name) else name
    dims = annotation.slice.elts[-1]
    if name not in _ANNOTATIONS or not isinstance(dims, ast.Constant) or not isinstance(dims.value, str):
        return None
    shape: list[int] = []
    for word in dims.value.split():
        text = word.lstrip("#?")
        text = text.partition("=")[2] or text
        if text in ("...", "_") or text.startswith("*"):
            raise BadShapes(f"the dimension “{word}” has no size; describe the argument in a “# mugraph:” comment")
        try:
            shape.append(_size(ast.parse(text, mode="eval").body, sizes))
        except SyntaxError:
            raise BadShapes(f"cannot read the dimension “{word}”") from None
    return TensorSpec(_ANNOTATIONS[name], tuple(shape))
