"""Edits of every kind of file, undone to the byte."""

from __future__ import annotations

import ast
import codecs
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.edit.apply import EditError, apply, apply_files
from mugraph.edit.module.file import module_text
from mugraph.edit.revert import revert_file

HEAD = "import torch\n\n\nclass Gated(torch.nn.Module):\n    def forward(self, x):\n"


def written(tmp_path: Path, content: bytes, name: str = "model.py") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def both_ways(path: Path, plans, kernels) -> str:
    """Applies, checks that undoing gives the same bytes and leaves no file behind, and returns the edited text."""
    before, beside = path.read_bytes(), set(path.parent.iterdir())
    done = apply_files(path, plans, kernels)
    after = path.read_bytes()
    assert after == done.source != before
    assert set(path.parent.iterdir()) == beside | {done.module, done.runtime}
    compile(after, path.name, "exec")
    compile(done.module_text, done.module.name, "exec")
    result = revert_file(path)
    assert path.read_bytes() == before
    assert set(path.parent.iterdir()) == beside
    assert result.regions == len(plans)
    return after.decode("utf-8-sig")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("indent", ["    ", "\t", "  "], ids=["four", "tab", "two"])
@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8], ids=["", "bom"])
def test_line_ends_indents_and_bom_stay(end, indent, bom, tmp_path, maker, source, part):
    text = source.replace("    ", indent).replace("\n", end)
    part = part.replace("    ", indent).replace("\n", end)
    path = written(tmp_path, bom + text.encode())
    edited = both_ways(path, [maker.plan(text, part)], maker.kernels)
    assert f"{end}{indent * 2}else:{end}{indent * 3}y = functional.silu({end}{indent * 4}x @ self.w,  # the p" in edited
    assert edited.count("\n") == (0 if end == "\r" else len(edited.split(end)) - 1)


def test_mixed_line_ends_stay(tmp_path, maker, source, part):
    text = source.replace("\n", "\r\n", 6)
    both_ways(written(tmp_path, text.encode()), [maker.plan(text, part)], maker.kernels)


def test_mixed_line_ends_inside_the_region_stay(tmp_path, maker, source, part):
    mixed = part.replace("\n", "\r\n", 1)
    text = source.replace(part, mixed)
    both_ways(written(tmp_path, text.encode()), [maker.plan(text, mixed)], maker.kernels)


def test_other_encodings_stay(tmp_path, maker):
    text = "# -*- coding: latin-1 -*-\n" + HEAD + "        y = f(x, 'é')  # für\n        return y\n"
    path = written(tmp_path, text.encode("latin-1"))
    plan = maker.plan(text, "y = f(x, 'é')")
    apply_files(path, [plan], maker.kernels)
    assert "            y = f(x, 'é')  # für\n" in path.read_bytes().decode("latin-1")
    revert_file(path)
    assert path.read_bytes() == text.encode("latin-1")


def test_ranges_are_utf16_and_names_any_script(tmp_path, maker):
    text = HEAD + (
        "        größe = '𝒜𝒷'; 結果 = f('𝒜', x)\n        y = [結果, '𝒜😀', (x @ self.w) * self.u]\n        return y\n"
    )
    names = ("結果", "self.w", "self.u")
    plan = maker.plan(text, "(x @ self.w) * self.u", unit="expression", live_ins=names, live_outs=("",))
    edited = both_ways(written(tmp_path, text.encode()), [plan], maker.kernels)
    assert "'𝒜😀', (\n            mugraph_kernels.gated(self, 結果)  # mugraph: " in edited
    assert "\n            else (x @ self.w) * self.u\n        )]\n" in edited


def test_strings_over_several_lines_keep_their_text(tmp_path, maker):
    body = (
        "        y = f(x, '''\n  kept\n        as it is\n''', f'''\n  {x}\n   {\n   x}''',\n"
        "              'continued \\\n   here', g)\n"
    )
    text = HEAD + body + "        return y\n"
    edited = both_ways(written(tmp_path, text.encode()), [maker.plan(text, body.strip())], maker.kernels)
    assert "            y = f(x, '''\n  kept\n        as it is\n''', f'''\n  {x}\n" in edited
    assert "                  'continued \\\n   here', g)\n" in edited


def test_nested_blocks_and_several_regions(tmp_path, maker):
    text = HEAD + (
        "        for i in range(2):\n"
        "            if x is not None:\n"
        "                # about a\n"
        "                a = f(x)\n"
        "                b = g(a)  # b\n"
        "\n"
        "                c = h(x)\n"
        "            else:\n"
        "                return k(x)\n"
        "        return m(c)\n"
    )
    plans = [
        maker.plan(text, "return m(c)", name="last", live_ins=("c", "self.w", "self.u"), live_outs=("return",)),
        maker.plan(text, "a = f(x)\n                b = g(a)", name="first", live_outs=("a", "b")),
        maker.plan(text, "k(x)", name="middle", unit="expression", live_outs=("",)),
        maker.plan(text, "c = h(x)", name="second", live_outs=("c",)),
    ]
    edited = both_ways(written(tmp_path, text.encode()), plans, maker.kernels)
    assert "                    a, b = mugraph_kernels.first(self, x)\n                else:\n" in edited
    assert "            return mugraph_kernels.last(self, c)\n        else:\n" in edited
    assert "        else:\n            return m(c)\n" in edited
    assert edited.count("import model_mugraph as mugraph_kernels\n") == 1


@pytest.mark.parametrize(
    ("statement", "outs", "expected"),
    [
        ("return f(x)", ("return",), "return mugraph_kernels.gated(self, x)\n"),
        ("return f(x), g(x)", ("return", "return"), "return mugraph_kernels.gated(self, x)\n"),
        ("return (f(x),)", ("return",), "return (mugraph_kernels.gated(self, x),)\n"),
    ],
)
def test_returns(statement, outs, expected, tmp_path, maker):
    text = f"{HEAD}        {statement}\n"
    edited = both_ways(written(tmp_path, text.encode()), [maker.plan(text, statement, live_outs=outs)], maker.kernels)
    assert expected in edited


def test_a_statement_that_shares_its_line_becomes_an_expression(tmp_path, maker):
    text = "import torch\n\nclass A:\n    def forward(self, x): return f(x)\n"
    plan = maker.plan(text, "return f(x)", live_outs=("return",))
    edited = both_ways(written(tmp_path, text.encode()), [plan], maker.kernels)
    assert "x): return (\n        mugraph_kernels.gated(self, x)  # mugraph: " in edited


def test_a_file_without_a_last_line_end(tmp_path, maker):
    text = "def forward(x, w, u):\n    return f(x)"
    plan = maker.plan(text, "return f(x)", live_ins=("x", "w", "u"), live_outs=("return",))
    assert both_ways(written(tmp_path, text.encode()), [plan], maker.kernels).endswith("        return f(x)")


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ('"""Doc."""\nfrom __future__ import annotations\nimport a\n\nX = 1\n', "import a\n@\n\nX = 1\n"),
        ("#!/usr/bin/env python\n# about\n", "# about\n@\ndef f"),
        ('"""Doc."""; import a; X = [\n 1]\n', "\n 1]\n@\n"),
        ("from . import layers\n", "from . import layers\nfrom . import model_mugraph as mugraph_kernels\n"),
        ("", "@\ndef f"),
    ],
)
def test_where_the_import_goes(top, expected, tmp_path, maker):
    text = top + "def f(x, w, u):\n    y = g(x)\n    return y\n"
    plan = maker.plan(text, "y = g(x)", live_ins=("x", "w", "u"))
    edited = both_ways(written(tmp_path, text.encode()), [plan], maker.kernels)
    assert expected.replace("@", "import model_mugraph as mugraph_kernels") in edited


def test_how_the_import_is_spelled_in_a_package(tmp_path, maker):
    folder = tmp_path / "pack" / "models"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "layers.py").touch()
    body = "def f(x, w, u):\n    y = g(x)\n    return y\n"
    for top, bottom, expected in (
        ("", "", "from . import model_mugraph as mugraph_kernels\n"),
        ("from pack.models.layers import g\n", "", "from pack.models import model_mugraph as mugraph_kernels\n"),
        ("", 'if __name__ == "__main__":\n    f(1, 2, 3)\n', "except ImportError:  # run as a script\n    import mo"),
    ):
        text = top + body + bottom
        plan = maker.plan(text, "y = g(x)", live_ins=("x", "w", "u"))
        assert expected in both_ways(written(folder, text.encode()), [plan], maker.kernels)


@pytest.mark.parametrize(
    ("says", "is_part"),
    [
        ("from parts.model import f\n", True),
        ("if True:\n    import parts.model as m\n", True),
        ("from parts import other, model\n", True),
        ("from .parts.model import (\n    f,\n)\n", True),
        ("from pack.parts.model import f\n", True),
        ("from pack.parts import model\n", True),
        ("# from parts.model import f\nfrom parts.models import f\n", False),
        ("from counterparts.model import f\nfrom parts.pack.model import f\n", False),
    ],
)
@pytest.mark.parametrize("above", [".", "deeper"])
def test_a_folder_without_init_is_a_package_where_a_file_above_says_so(above, says, is_part, tmp_path, maker):
    folder = tmp_path / above / "parts"
    folder.mkdir(parents=True)
    (tmp_path / "run.py").write_text(says)
    text = "def f(x, w, u):\n    y = g(x)\n    return y\n"
    edited = both_ways(
        written(folder, text.encode()), [maker.plan(text, "y = g(x)", live_ins=("x", "w", "u"))], maker.kernels
    )
    assert ("from . import model_mugraph as mugraph_kernels\n" in edited) is is_part
    assert "import model_mugraph as mugraph_kernels\n" in edited


def test_a_stem_that_is_no_name(tmp_path, maker, source, part):
    path = written(tmp_path, source.encode(), "1_Gated product.py")
    assert "import _1_Gated_product_mugraph as" in both_ways(path, [maker.plan(source, part)], maker.kernels)


def test_two_edits_one_after_the_other(tmp_path, maker):
    text = HEAD + "        a = f(x)\n        b = g(a)\n        return b\n"
    path = written(tmp_path, text.encode())
    first = apply_files(path, [maker.plan(text, "a = f(x)", name="first", live_outs=("a",))], maker.kernels)
    between = path.read_text()
    second = apply_files(path, [maker.plan(between, "b = g(a)", name="second", live_outs=("b",))], maker.kernels)
    assert first.module != second.module
    assert "import model_mugraph_2 as mugraph_kernels_2\n" in path.read_text()
    assert revert_file(path).deleted == (second.module, first.module, first.runtime)
    assert path.read_text() == text


def test_replacing_a_replaced_part_is_refused(gated_file, maker, source, part):
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    edited = gated_file.read_text()
    inner = part.replace("\n", "\n    ")
    with pytest.raises(EditError, match="replaced already; revert the file first"):
        apply_files(gated_file, [maker.plan(edited, inner, name="again")], maker.kernels)
    assert gated_file.read_text() == edited


def test_overlapping_regions_are_refused(gated_file, maker, source, part):
    plans = [maker.plan(source, part), maker.plan(source, "self.w,", name="inner", unit="expression", live_outs=("",))]
    plans[1] = maker.plan(source, "x @ self.w", name="inner", unit="expression", live_outs=("",))
    with pytest.raises(EditError, match="overlap"):
        apply_files(gated_file, plans, maker.kernels)
    assert gated_file.read_text() == source


@pytest.mark.parametrize(
    ("statement", "options", "sentence"),
    [
        ("y = f(x)", {"live_outs": ("return",)}, "returns and goes on"),
        ("return f(x)", {"live_outs": ("y",)}, "what it returns is not known"),
        ("return [f(x), 1]", {"live_outs": ("return", "return")}, "no plain tuple"),
        ("y = f(x)", {"live_outs": ()}, "is used"),
        ("y = f(x)", {"guards": ("self.",)}, "no Python expression"),
        ("y = f(x); z = 1", {}, "no run of whole statements"),
    ],
)
def test_what_cannot_be_replaced_is_a_sentence(statement, options, sentence, tmp_path, maker):
    text = f"{HEAD}        {statement}\n"
    part = statement if "z" not in statement else "f(x); z"
    path = written(tmp_path, text.encode())
    with pytest.raises(EditError, match=sentence):
        apply_files(path, [maker.plan(text, part, **options)], maker.kernels)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_changed_is_refused(gated_file, maker, source, part):
    plan = maker.plan(source, part)
    gated_file.write_text("\n" + source)
    with pytest.raises(EditError, match="changed since it was analysed"):
        apply_files(gated_file, [plan], maker.kernels)


def test_guards_stay_out_of_the_users_file(maker):
    text = HEAD + "        y = f(x)\n        return y\n"
    plan = maker.plan(text, "y = f(x)", guards=("type(self.a).__qualname__ == 'A' or self.b", "limit == 3"))
    edited = apply(text.encode(), Path("model.py"), [plan], "model_mugraph").decode()
    test = next(node.test for node in ast.walk(ast.parse(edited)) if isinstance(node, ast.If))
    assert ast.unparse(test) == "mugraph_kernels.gated_fits(self, x, limit)"


def test_live_ins_called_directly_keep_their_order(maker):
    """Which is not always that of the function's parameters."""
    text = "def forward(x, w, u):\n    y = f(x)\n    return y\n"
    plan = maker.plan(text, "y = f(x)", live_ins=("w", "x", "u"))
    plan = replace(plan, region=replace(plan.region, function_args=("x", "w", "u")))
    edited = apply(text.encode(), Path("model.py"), [plan], "model_mugraph").decode()
    assert "y = mugraph_kernels.gated(w, x, u)" in edited
    assert "def gated(w: torch.Tensor, x: torch.Tensor" in module_text(
        [plan], maker.kernels, original_path=Path("model.py")
    )


def test_the_lines_of_an_expression_are_indented_with_it(tmp_path, maker):
    body = (
        "        y = 1 + f(\n            x,  # first\n\n            g(\n                x\n            ),\n"
        '            """text\n  stays""",\n        )\n        return y\n'
    )
    text = HEAD + body
    part = text[text.index("f(\n            x,  # first") : text.index("\n        return y")]
    path = written(tmp_path, text.encode())
    edited = both_ways(path, [maker.plan(text, part, unit="expression", live_outs=("",))], maker.kernels)
    assert (
        "            else f(\n                x,  # first\n\n"
        "                g(\n                    x\n                ),\n"
        '                """text\n  stays""",\n            )\n        )\n        return y\n'
    ) in edited


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            "import torch\nfrom .layers import a\nfrom .zoo import b\n\nX = 1\n",
            "import torch\n@\nfrom .layers import a\nfrom .zoo",
        ),
        (
            "import torch\n\nLOG = 1\n\nfrom ..top import c\nfrom . import layers\n",
            "import c\nfrom . import layers\n@\n",
        ),
        ("from .. import a\nimport torch\n", "from .. import a\n@\nimport torch\n"),
        ("import torch\nfrom . import a; import b\n", "from . import a; import b\n@\n"),
    ],
)
def test_a_relative_import_stands_beside_its_like(head, expected, tmp_path, maker):
    text = f"{head}\n{HEAD}        y = f(x)\n        return y\n"
    path = written(tmp_path, text.encode())
    edited = both_ways(path, [maker.plan(text, "y = f(x)")], maker.kernels)
    assert expected.replace("@", "from . import model_mugraph as mugraph_kernels") in edited


def test_an_absolute_import_stands_beside_its_neighbours(tmp_path, maker):
    (tmp_path / "layers.py").touch()
    (tmp_path / "zoo.py").touch()
    text = f"import torch\nimport layers\nimport zoo\nX = 1\n{HEAD}        y = f(x)\n        return y\n"
    edited = both_ways(written(tmp_path, text.encode()), [maker.plan(text, "y = f(x)")], maker.kernels)
    assert "import layers\nimport model_mugraph as mugraph_kernels\nimport zoo\n" in edited
