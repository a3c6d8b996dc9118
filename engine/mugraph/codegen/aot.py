"""Ahead-of-time compilation of a kernel for a device that need not be present: does it compile, does it fit?

The only file of code generation that imports Triton, and only when it is called.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mugraph.ir.dtypes import READ
from mugraph.ir.kernel import KernelSource, Rejected

_log = logging.getLogger("mugraph.codegen")

_ALIGNED = [["tt.divisibility", 16]]


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the compiler made of a kernel; of several that run one after the other, the most that one of them needs.

    shared_bytes: dynamic shared memory of one block
    registers:    of one thread; None when the tool that reads them from the binary is missing
    spilled:      bytes of one thread's stack, which is where registers spill to; None likewise
    ptx:          the assembly's text, of several kernels one after the other
    cubin:        the binary, likewise
    """

    shared_bytes: int
    registers: int | None
    spilled: int | None
    ptx: str
    cubin: bytes


def compile_for(source: KernelSource, capability: int) -> Compiled:
    """Compile for compute capability `capability` / 10 (90 for 9.0), in this process.

    Pointers are taken as 16-byte aligned, which is what PyTorch allocates, but those of views that are known not to
    be. Raises Rejected with the compiler's last
    line when it refuses.
    """
    if source.parts:
        return _together([compile_for(part, capability) for part in source.parts if part.library is None])
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kinds = [READ[tensor.dtype].pointer for tensor in source.tensors] + ["*i32"] * (source.counters > 0)
    signature = dict(zip(source.pointers, kinds, strict=True))
    signature |= dict.fromkeys(source.arguments, "i32") | dict.fromkeys(source.constexprs, "constexpr")
    skewed = {f"{tensor.name}_ptr" for tensor in source.tensors if tensor.skew}
    attributes = {(at,): _ALIGNED for at, name in enumerate(source.pointers) if name not in skewed}
    constants: Any = dict(source.constexprs)
    early = {"launch_pdl": True} if source.early else {}
    with tempfile.TemporaryDirectory() as folder:
        kernel: Any = getattr(_imported(source, Path(folder)), source.function)
        if not hasattr(kernel, "src"):
            raise RuntimeError("Triton's interpreter is on (TRITON_INTERPRET): nothing compiles in this process.")
        compiler: Any = triton
        try:
            built = compiler.compile(
                ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes),
                target=GPUTarget("cuda", capability, 32),
                options={"num_warps": source.num_warps, "num_stages": source.num_stages, **early},
            )
        except Exception as error:
            reason = (str(error).strip() or repr(error)).splitlines()[-1]
            raise Rejected(f"Triton does not compile {source.name} for sm_{capability}: {reason}") from error
        cubin = bytes(built.asm["cubin"])
        registers, spilled = _resources(cubin, Path(folder))
    return Compiled(int(built.metadata.shared), registers, spilled, str(built.asm["ptx"]), cubin)


def _together(parts: list[Compiled]) -> Compiled:
    registers = [part.registers for part in parts if part.registers is not None]
    spilled = [part.spilled for part in parts if part.spilled is not None]
    return Compiled(
        max(part.shared_bytes for part in parts),
        max(registers) if len(registers) == len(parts) else None,
        max(spilled) if len(spilled) == len(parts) else None,
        "\n".join(part.ptx for part in parts),
        b"".join(part.cubin for part in parts),
    )


def _imported(source: KernelSource, folder: Path) -> ModuleType:
    """Triton reads a kernel's source from disk, so the text becomes a file first."""
    path = folder / f"{source.name}.py"
    path.write_text(source.standalone(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(source.name, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _resources(cubin: bytes, folder: Path) -> tuple[int | None, int | None]:
    """(registers, spilled bytes) of one thread, as the `cuobjdump` that comes with Triton reads them."""
    from triton import knobs

    tools: Any = knobs
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    try:
        tool = str(tools.nvidia.cuobjdump.path)
        text = subprocess.run(
            [tool, "--dump-resource-usage", str(path)], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, RuntimeError, AttributeError, subprocess.SubprocessError) as error:
        _log.info("a kernel's registers cannot be read: %s", error)
        return None, None
    usage = {key: int(value) for key, value in re.findall(r"\b(REG|LOCAL|STACK):(\d+)", text)}
    spilled = max(usage.get("STACK", 0), usage.get("LOCAL", 0))
    return usage.get("REG"), spilled if usage else None
