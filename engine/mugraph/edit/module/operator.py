"""A generated kernel as a PyTorch operator, so that torch.compile and torch.export trace through it."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.codegen.dynamic import shape_text, size_lines
from mugraph.codegen.scratch_places import Places
from mugraph.edit.module.laid import Laid
from mugraph.ir.dtypes import ELEMENTS
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import RESERVED, Scope


def torch_type(dtype: str) -> str:
    if dtype not in ELEMENTS:
        raise Rejected(f"values of type {dtype} cannot be named in the kernel module")
    return ELEMENTS[dtype].torch_text


def tuple_text(items: Sequence[object]) -> str:
    """A tuple's text, with the comma that makes one element a tuple."""
    return f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})"


def returns(count: int) -> str:
    """The annotation of a function that returns `count` tensors."""
    if not count:
        return "None"
    return "torch.Tensor" if count == 1 else f"tuple[{', '.join(['torch.Tensor'] * count)}]"


def function(name: str, parameters: Sequence[str], result: str, body: Sequence[str], others: Sequence[str] = ()) -> str:
    """A function over tensors. others: further parameters, as they are written"""
    given = [*(f"{parameter}: torch.Tensor" for parameter in parameters), *others]
    header = call("def ", name, given, f" -> {result}:", width=110)
    return "\n".join([*header, *(f"    {line}" if line else "" for line in body)])


def call(prefix: str, callee: str, arguments: Sequence[str], suffix: str = "", width: int = 100) -> list[str]:
    """`prefix callee(arguments)suffix` on one line, or broken the way formatters break it."""
    joined = ", ".join(arguments)
    one = f"{prefix}{callee}({joined}){suffix}"
    if len(one) <= width:
        return [one]
    if len(joined) + 4 <= width:
        return [f"{prefix}{callee}(", f"    {joined}", f"){suffix}"]
    return [f"{prefix}{callee}(", *(f"    {argument}," for argument in arguments), f"){suffix}"]


def parameters_of(kernel: KernelSource) -> tuple[str, ...]:
    """One parameter per input, by the tensor's own name."""
    scope = Scope(RESERVED)
    return tuple(scope.unique(tensor.name) for tensor in kernel.inputs)


def operator_text(
    kernel: KernelSource, operator: str, laid: Sequence[Laid | None] = (), places: Places | None = None
) -> str:
    """`_<name>`, which regions call, made of the kernel's launcher and what the operator (called `operator` in
    PyTorch's registry) returns where something traces it. laid: how its results lie (laid.py); places: what its kernels
    hand to one another (codegen/scratch_places.py)"""
    parameters = parameters_of(kernel)
    called = dict(zip((tensor.name for tensor in kernel.inputs), parameters, strict=True))
    read, sizes = size_lines(kernel.inputs, called, kernel.sizes, kernel.least, Scope({*RESERVED, *parameters}))
    laid = laid or [None] * len(kernel.outputs)
    empties = [
        f"{parameters[0]}.new_empty({shape_text(tensor, kernel.sizes, sizes)}, dtype={torch_type(tensor.dtype)})"
        if lies is None
        else f"{parameters[0]}.new_empty_strided({lies[0]}, {lies[1]}, dtype={torch_type(tensor.dtype)})"
        for tensor, lies in zip(kernel.outputs, laid, strict=True)
    ]
    made = empties[0] if len(empties) == 1 else f"({', '.join(empties)})"
    if read:
        fake = call("def ", f"_made_by_{kernel.name}", parameters, ":", width=110)
        lines = [*fake, *(f"    {line}" for line in (*read, f"return {made}")), "", ""]
        made = f"_made_by_{kernel.name}"
    else:
        lines, made = [], f"lambda {', '.join(parameters)}: {made}"
    results = [f"results={len(empties)}"] if len(empties) > 1 else []
    results += [f"laid={tuple_text(laid)}"] if any(laid) else []
    results += [f"scratch={places}"] if places else []
    results += ["varies=True"] if read else []
    given = [f'"{operator}"', f'"launch_{kernel.name}"', made, *results]
    return "\n".join([*lines, *call(f"_{kernel.name} = ", "_operator", given, width=110)])


def writer_text(kernel: KernelSource) -> str:
    """`_<name>` of a kernel that writes over what it reads."""
    return f'_{kernel.name} = _writer("launch_{kernel.name}")'
