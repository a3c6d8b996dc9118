"""Edits are undone, whatever else was changed meanwhile."""

from __future__ import annotations

import pytest
from mugraph.edit.apply import EditError, apply_files
from mugraph.edit.names import module_name
from mugraph.edit.revert import revert_file


def test_undo_keeps_what_else_was_changed(gated_file, maker, source, part):
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)

    def change(text: str) -> str:
        return text.replace("return y + 1", "return y + 2").replace("import torch\n", "import math\nimport torch\n", 1)

    gated_file.write_text(change(gated_file.read_text()))
    revert_file(gated_file)
    assert gated_file.read_text() == change(source)


def test_undo_after_the_line_ends_were_converted(gated_file, maker, source, part):
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    edited = gated_file.read_bytes()
    gated_file.write_bytes(edited.replace(b"\n", b"\r\n"))
    revert_file(gated_file)
    assert gated_file.read_bytes() == source.replace("\n", "\r\n").encode()


def test_undo_when_some_line_ends_were_converted(gated_file, maker, source, part):
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    gated_file.write_bytes(gated_file.read_bytes().replace(b"\n", b"\r\n", 3))
    revert_file(gated_file)
    assert gated_file.read_bytes() == source.replace("\n", "\r\n", 3).encode()


@pytest.mark.parametrize("where", ["x @ self.w,  # the product", "y = mugraph_kernels.gated(self, x"])
def test_a_part_edited_by_hand_is_refused(where, gated_file, maker, source, part):
    module = apply_files(gated_file, [maker.plan(source, part)], maker.kernels).module
    by_hand = gated_file.read_text().replace(where, where.replace("x", "x + 0", 1))
    gated_file.write_text(by_hand)
    with pytest.raises(EditError, match="edited by hand"):
        revert_file(gated_file)
    assert gated_file.read_text() == by_hand
    assert module.exists()


def test_undo_with_nothing_to_undo(gated_file):
    with pytest.raises(EditError, match="nothing to undo"):
        revert_file(gated_file)


def test_undo_when_the_file_was_restored_by_other_means(gated_file, maker, source, part):
    module = apply_files(gated_file, [maker.plan(source, part)], maker.kernels).module
    gated_file.write_text(source)
    assert revert_file(gated_file).regions == 0
    assert gated_file.read_text() == source
    assert not module.exists()


def test_a_module_somebody_else_imports_stays(gated_file, maker, source, part):
    module = apply_files(gated_file, [maker.plan(source, part)], maker.kernels).module
    (gated_file.parent / "other.py").write_text(f"import {module.stem}\n")
    result = revert_file(gated_file)
    assert result.kept == (module,)
    assert result.deleted == ()
    assert module.exists()
    assert gated_file.read_text() == source


def test_a_file_of_the_users_with_the_modules_name_stays(gated_file, maker, source, part):
    own = gated_file.parent / f"{module_name(gated_file)}.py"
    own.write_text("mine = 1\n")
    done = apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    assert done.module.stem == "gated_model_mugraph_2"
    revert_file(gated_file)
    assert own.read_text() == "mine = 1\n"
    assert gated_file.read_text() == source


def test_a_module_that_other_kernels_name_goes(gated_file, maker, source, part):
    """Kernels made while another file was edited compare its code by the names of that code; they import nothing."""
    module = apply_files(gated_file, [maker.plan(source, part)], maker.kernels).module
    other = gated_file.parent / "caller.py"
    other.write_text(source)
    its_module = apply_files(other, [maker.plan(source, part)], maker.kernels).module
    its_module.write_text(f"_OUTSIDE = {{'mugraph_kernels': '{module.stem}'}}\n{its_module.read_text()}")
    result = revert_file(gated_file)
    assert result.kept == ()
    assert not module.exists()
    assert gated_file.read_text() == source
    assert its_module.exists()
    revert_file(other)
    assert {one.name for one in gated_file.parent.glob("*.py")} == {gated_file.name, other.name}
    assert other.read_text() == source
