"""With the real engine, on every sample: what an editor applies is what `mugraph optimize --apply` writes.

pytest-lsp's client is VS Code over standard input and output, and Neovim over TCP: the one gets versioned edits that
create files, the other plain ones. All share a store with the tests of the samples: each region is searched once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from mugraph import cli

from tests.server.support.lsp import Document, Session, over_stdio, over_tcp
from tests.support import engine
from tests.support.clock import FILE_S
from tests.support.forks import ForkServer
from tests.support.searched import BUDGET_S, TARGET, Searched, cache_folder

REPOSITORY = Path(__file__).parents[2]
SAMPLES = sorted((REPOSITORY / "samples").glob("*.py"))
LONG = {"llama_block", "self_attention", "gemm_chain", "lora"}
"""Many regions, or long ones: what is done with each is what is done with those of the others."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.usefixtures("forks"),
    pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return {"MUGRAPH_CACHE_DIR": str(cache_folder(tmp_path_factory))}


@pytest.fixture(scope="module")
def settings(tracing: ForkServer, interpreting: ForkServer) -> Mapping[str, object]:
    command = engine.command(tracing.path, interpreting.path)
    return {"target": TARGET, "search": {"budget": BUDGET_S, "fileBudget": FILE_S}, "engine": {"command": [*command]}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vscode(
    tmp_path_factory: pytest.TempPathFactory, settings: Mapping[str, object], store: Mapping[str, str]
) -> AsyncIterator[Session]:
    async with over_stdio(tmp_path_factory.mktemp("vscode"), settings, store, "visual-studio-code") as session:
        yield session


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def neovim(
    tmp_path_factory: pytest.TempPathFactory, settings: Mapping[str, object], store: Mapping[str, str]
) -> AsyncIterator[Session]:
    async with over_tcp(tmp_path_factory.mktemp("neovim"), settings, store, "neovim@v0.11") as session:
        yield session


@pytest.mark.timeout(900)  # on a machine that others use as well
@pytest.mark.parametrize(
    "sample",
    [pytest.param(path, marks=[pytest.mark.more] if path.stem in LONG else []) for path in SAMPLES],
    ids=lambda path: path.stem,
)
async def test_what_is_applied_is_what_the_command_line_writes(
    vscode: Session,
    neovim: Session,
    sample: Path,
    store: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    searched: Searched,
) -> None:
    searched(sample)
    over_stdio_written = await _through(vscode, sample, and_back=True)
    over_tcp_written = await _through(neovim, sample, and_back=False)

    theirs = tmp_path / sample.name
    theirs.write_bytes(sample.read_bytes())
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", store["MUGRAPH_CACHE_DIR"])
    seconds = ["--budget", f"{BUDGET_S}", "--file-budget", f"{FILE_S}"]
    assert cli.run(["optimize", str(theirs), "--apply", "--target", TARGET, *seconds]) == 0
    by_the_command = _written(theirs)
    assert sample.name in by_the_command
    assert over_stdio_written == by_the_command
    assert over_tcp_written == by_the_command


async def _through(session: Session, sample: Path, and_back: bool) -> dict[str, str]:
    """From didOpen to the applied action. The files there are then. and_back: what it says of them next, and revert;
    each costs a process that imports torch."""
    path = session.root / sample.name
    path.write_bytes(sample.read_bytes())
    document = Document(session, path)
    await document.settled()
    improved = document.found("improved")
    for diagnostic in improved:
        assert "verified" in diagnostic.message
        assert "estimated for" in diagnostic.message
    if improved:
        place = improved[0].range.start
        hover = await document.hover(place)
        assert "verified" in hover
        assert "```text" in hover
        replacing = [one for one in await document.actions(place) if one.title.startswith("Replace")]
        await document.choose(replacing[-1])  # all of them, where there is more than one
        document.write()
    written = _written(path)
    assert (len(written) == 2) == bool(improved)
    if improved and and_back:
        document.save()
        await document.until(lambda: bool(document.found("applied")), "regions that run as kernels")
        place = document.found("applied")[0].range.start
        (back,) = [one for one in await document.actions(place) if one.title == "Revert to PyTorch"]
        await document.choose(back)
        assert document.text == sample.read_text()
        assert list(_written(path)) == [sample.name]
    document.close()
    return written


def _written(path: Path) -> dict[str, str]:
    """The file and the modules beside it, by name."""
    return {found.name: found.read_text() for found in path.parent.glob(f"{path.stem}*.py")}
