"""Which right graphs of the pool are proved, and why the others are not, as a table.

    python -m tests.trust.proof_table [PROGRAMS]

`functions` are the operators other than sums, products and quotients.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mugraph.ir.json import mugraph_from_json
from mugraph.ir.program import TensorProgram
from mugraph.verification.document import verify_mugraph

from tests.trust.campaign import program_of
from tests.trust.pool import entry, names


def functions(program: TensorProgram) -> str:
    kinds = {op.fn or str(op.kind) for op in program.ops if not op.kind.is_leaf}
    return ", ".join(sorted(kinds - {"add", "mul", "div", "sum", "dot", "mask", "const"})) or "–"


def main(programs: Sequence[str]) -> None:
    proved = count = 0
    print("| program | functions | graphs proved | why not the others |\n| --- | --- | --- | --- |")
    for name in programs or names():
        program = program_of(name)
        verdicts = [verify_mugraph(program, mugraph_from_json(graph), 1) for graph in entry(name).graphs]
        proofs = [verdict.proof for verdict in verdicts if verdict.proof is not None]
        why = sorted({proof.note for proof in proofs if not proof.proved})
        found = sum(proof.proved for proof in proofs)
        print(f"| {name} | {functions(program)} | {found} of {len(verdicts)} | {'; '.join(why)} |", flush=True)
        proved, count = proved + found, count + len(verdicts)
    print(f"\n{proved} of {count} graphs are proved.")


if __name__ == "__main__":
    main(sys.argv[1:])
