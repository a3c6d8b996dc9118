"""Public repositories, as a user has them: recorded, optimized, applied, run with their kernels, reverted. A table.

    python -m tests.public.repositories CLONES [NAMES] [--work FOLDER] [--packages FOLDER] [--budget SECONDS]
                                       [--file-budget SECONDS] [--loops]

With --loops the language models make longer texts (drivers/loop_*.py), in which sizes grow.

CLONES is a folder with clones of the repositories (names as in REPOSITORIES); those that are absent are skipped. They
are copied to the work folder, and what they need besides PyTorch is looked for in the folder of packages. Kernels are
estimated for an H100 and run in Triton's interpreter: no GPU is needed. Not part of the suite.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mugraph.edit.source.record import read_record

DRIVERS = Path(__file__).parent / "drivers"
STUBS = Path(__file__).parent / "stubs"
"""Packages that are imported and not needed, for where they are not installed."""
ENGINE = [Path(one).resolve() for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
"""Where mugraph itself is, if it is not the one that is installed."""
CHILD = Path(__file__).parent / "compare_child.py"
REPOSITORIES = {
    "nanoGPT": ("model.py",),
    "gpt-fast": ("model.py", "generate.py"),
    "llama3": ("llama/model.py",),
    "mamba-minimal": ("model.py",),
    "vit-pytorch": ("vit_pytorch/vit.py", "vit_pytorch/simple_vit.py"),
    "dino": ("vision_transformer.py",),
    "whisper": ("whisper/model.py",),
    "LoRA": ("loralib/layers.py",),
    "minGPT": ("mingpt/model.py",),
    "DiT": ("models.py",),
    "segment-anything": (
        "segment_anything/modeling/image_encoder.py",
        "segment_anything/modeling/transformer.py",
        "segment_anything/modeling/mask_decoder.py",
    ),
    "CLIP": ("clip/model.py",),
    "DeepSeek-V3": ("inference/model.py",),
    "Swin-Transformer": ("models/swin_transformer.py",),
    "flux": ("src/flux/modules/layers.py", "src/flux/math.py"),
    "pytorch-image-models": (
        "timm/models/vision_transformer.py",
        "timm/models/mlp_mixer.py",
        "timm/models/convnext.py",
        "timm/layers/mlp.py",
        "timm/layers/attention.py",
        "timm/layers/norm.py",
    ),
}
"""With the files that are optimized."""
SOURCES = {"DeepSeek-V3": "inference", "flux": "src"}
"""Folders in which a repository's modules are looked for, where that is not its own."""
LOOPS = ("nanoGPT", "gpt-fast", "llama3")
"""With a driver that makes a longer text."""


WATCHED = """
import json, sys
from mugraph.checking.run import run_watched
watched = run_watched(sys.argv[1:])
print(json.dumps([{**vars(one), "calls": one.calls, "file": str(one.file)} for one in watched.regions]))
sys.exit(watched.status)
"""
"""What `mugraph check --run` does, with the marks of the regions that its document does not have."""


@dataclass
class Row:
    name: str
    offered: int = 0
    calls: int = 0
    fits: int = 0
    taken: int = 0
    taken_of_fits: int = 0
    other_sizes: int = 0
    results: str = "-"
    reverted: str = "-"
    said: list[str] = field(default_factory=list[str])

    @property
    def cells(self) -> list[str]:
        numbers = [str(one) for one in (self.offered, self.calls, self.other_sizes, self.fits, self.taken)]
        shares = [_share(self.taken_of_fits, self.fits), _share(self.taken, self.calls)]
        return [self.name, *numbers, *shares, self.results, self.reverted]


def _share(taken: int, calls: int) -> str:
    return f"{100 * taken / calls:.0f} %" if calls else "-"


HEAD = [
    "repository", "regions written", "calls", "only of other sizes", "made for", "taken", "of those", "of all",
    "results", "reverted",
]  # fmt: skip
"""Made for: the calls that regions are offered for, by the parts of recorded calls that reports say before anything is
applied."""


class Failed(Exception):
    """One step, in a sentence."""


class Trial:
    def __init__(
        self,
        name: str,
        clone: Path,
        work: Path,
        packages: Path | None,
        budget: float,
        *,
        loops: bool = False,
        file_budget: float | None = None,
    ) -> None:
        self.name = name
        self.folder = work / name
        self.notes = work / f"{name}.notes"
        self.budget, self.file_budget = budget, file_budget
        self.parts: dict[str, float] = {}
        self.driver = DRIVERS / f"{'loop' if loops else 'run'}_{name.replace('-', '_')}.py"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.notes, ignore_errors=True)
        self.notes.mkdir(parents=True)
        shutil.copytree(clone, self.folder, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
        self.original = digests(self.folder)
        paths = [
            self.folder / SOURCES.get(name, ""),
            DRIVERS,
            *([packages] if packages is not None else []),
            STUBS,
            *ENGINE,
        ]
        self.around = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",  # for times that do not depend on what else runs here
            "MUGRAPH_CACHE_DIR": str(self.notes / "cache"),
        }

    def ran(self, step: str, *command: str, **around: str) -> str:
        """Its standard output; all it says is kept in the notes."""
        since = time.monotonic()
        run = subprocess.run(
            command, cwd=self.folder, env={**self.around, **around}, capture_output=True, text=True, timeout=1800
        )
        (self.notes / f"{step}.txt").write_text(f"{' '.join(command)}\n{run.stdout}\n--\n{run.stderr}")
        print(f"  {self.name}: {step} ({time.monotonic() - since:.0f} s)", file=sys.stderr, flush=True)
        if run.returncode:
            raise Failed(f"{step} ends with status {run.returncode}: {(run.stderr.splitlines() or ['-'])[-1]}")
        return run.stdout

    def mugraph(self, step: str, *arguments: str, **around: str) -> str:
        return self.ran(step, sys.executable, "-m", "mugraph", *arguments, **around)

    def driven(self, results: str, **around: str) -> dict[str, str]:
        return {"PUBLIC_RESULTS": str(self.notes / results), **around}

    def row(self) -> Row:
        row = Row(self.name)
        program = (sys.executable, str(self.driver))
        try:
            self.ran("exact", *program, **self.driven("exact.pt", PUBLIC_EXACT="1"))
            self.mugraph("record", "record", "--", *program, **self.driven("before.pt"))
            for file in REPOSITORIES[self.name]:
                row.offered += self.applied(file, row)
            if row.offered:
                self.checked(row, program)
                row.results = self.ran("compare", sys.executable, str(CHILD), str(self.notes)).strip()
        except (Failed, subprocess.TimeoutExpired) as failed:
            row.said.append(str(failed))
        row.reverted = self.reverted()
        return row

    def applied(self, file: str, row: Row) -> int:
        """How many regions were written."""
        step = f"optimize {file.replace('/', '-')}"
        options = ["--apply", "--json", "--no-measure", "--target", "h100", "--budget", str(self.budget)]
        options += ["--file-budget", str(self.file_budget)] if self.file_budget is not None else []
        document: Any = json.loads(self.mugraph(step, "optimize", file, *options))
        for region in document["regions"]:
            speedup = region.get("timing", {}).get("speedup")
            said = f"{region['status']} {speedup or ''}".strip()
            line = region["range"]["start"]["line"] + 1
            row.said.append(f"{file}:{line} {region['function']}: {said}; {region['reason'] or '-'}")
        offered = [one for one in document["regions"] if one["status"] == "improved" and not one["reason"]]
        record = read_record((self.folder / file).with_name(f"{Path(file).stem}_mugraph.py")) if offered else None
        if record is not None:
            places = sorted({(one["range"]["start"]["line"], one["range"]["start"]["character"]) for one in offered})
            for place, replaced in zip(places, record.regions, strict=True):  # in the file's order
                here = [one for one in offered if tuple(one["range"]["start"].values()) == place]
                self.parts[replaced.id] = sum(_part(one.get("share", {})) for one in here)
        return len(offered)

    def checked(self, row: Row, program: tuple[str, ...]) -> None:
        around = self.driven("after.pt", TRITON_INTERPRET="1")
        told = self.ran("check", sys.executable, "-c", WATCHED, *program, **around)
        for region in json.loads(told.splitlines()[-1]):
            calls, taken, sizes = region["calls"], region["taken"], region["other_sizes"]
            fits = round(calls * self.parts[region["id"]])
            row.calls, row.taken, row.fits = row.calls + calls, row.taken + taken, row.fits + fits
            row.taken_of_fits += min(taken, fits)
            row.other_sizes += sizes
            row.said.append(f"{region['function']}: {taken} of {calls}, made for {fits}, {sizes} of other sizes")
            row.said += [f"    {calls}: {why}" for why, calls in region["refused"]]

    def reverted(self) -> str:
        try:
            for file in REPOSITORIES[self.name]:
                if list((self.folder / file).parent.glob(f"{Path(file).stem}_mugraph.py")):
                    self.mugraph(f"revert {file.replace('/', '-')}", "revert", file)
        except Failed as failed:
            return str(failed)
        return "byte for byte" if digests(self.folder) == self.original else "no"


def _part(share: dict[str, Any]) -> float:
    """Of the recorded calls; all of them where the recording says nothing of the region's function."""
    return share["fits"] / share["of"] if share.get("fits") is not None else 1.0


def digests(folder: Path) -> dict[Path, str]:
    """Of all its files, bytecode apart."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def table(rows: list[list[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (HEAD, ["---"] * len(HEAD), *rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--work", type=Path, default=Path("public-trial"))
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--budget", type=float, default=5.0)
    parser.add_argument("--file-budget", type=float, help="seconds for a whole file, as `mugraph optimize` takes them")
    parser.add_argument("--loops", action="store_true", help="the decoding loops of language models")
    given = parser.parse_args()
    rows: list[Row] = []
    for name in given.names or (LOOPS if given.loops else REPOSITORIES):
        clone: Path = given.clones / name
        if not clone.is_dir():
            print(f"  {name}: not in {given.clones}", file=sys.stderr)
            continue
        more = {"loops": given.loops, "file_budget": given.file_budget}
        trial = Trial(name, clone.resolve(), given.work.resolve(), given.packages, given.budget, **more)
        row = trial.row()
        rows.append(row)
        print(f"{name}\n" + "\n".join(f"  {said}" for said in row.said), flush=True)
    print(table([row.cells for row in rows]))


if __name__ == "__main__":
    main()
