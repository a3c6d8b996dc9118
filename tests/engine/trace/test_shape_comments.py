"""Where a `# mugraph:` comment is read, and what is said of one that stands elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import dedent

import pytest
from mugraph.ir.region import Trace
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.report import without_running
from mugraph.trace.run.entries import Definitions, find_definitions
from mugraph.trace.syntax.shapes import BadShapes, TensorSpec, parse_spec, spec_text
from mugraph.trace.syntax.source import Source
from mugraph.trace.syntax.tensor_arguments import tensor_arguments


def found(text: str) -> Definitions:
    return find_definitions(Source("/folder/model.py", dedent(text)))


@pytest.mark.parametrize(
    "text",
    [
        """
        def f(x):
            # mugraph: x=f32[4]
            return x @ x
        """,
        """
        def f(
            x,  # mugraph reads nothing here
        ):

            # about x
            # mugraph: x=f32[4]

            "Its docstring."
            return x @ x
        """,
        """
        async def f(x):
            # mugraph: x=f32[4]
            @wrap
            def inner(y):
                return y
            return inner(x)
        """,
        """
        # mugraph: x=f32[n]
        def f(x):
            # mugraph: n=4
            return x @ x
        """,
    ],
    ids=["first line", "before the docstring", "above an inner function", "above as well"],
)
def test_a_comment_in_the_body(text: str):
    known = found(text)
    (entry,) = known.entries
    assert entry.function == "f"
    assert entry.arguments["x"] == TensorSpec("f32", (4,))
    assert known.misplaced == ()


@pytest.mark.parametrize("first", ["def __init__(self): ...", "width = 4", '"Its docstring."'])
def test_the_first_line_of_a_class_is_the_classs(first: str):
    text = f"""
        class Block(nn.Module):
            # mugraph: x=f32[4]
            {first}
            def forward(self, x):
                return x @ x
        """
    assert [entry.function for entry in found(text).entries] == ["Block.forward"]


def test_directly_above_a_first_method_it_is_the_methods():
    text = """
        class Block(nn.Module):
            # mugraph: init(n=3)

            # mugraph: y=f32[4]
            def twice(self, y):
                return self(y) + self(y)
            def forward(self, x):
                return x @ x
        """
    (entry,) = found(text).entries
    assert (entry.function, entry.method, list(entry.init or ())) == ("Block.twice", "twice", ["n"])


@pytest.mark.parametrize(
    ("text", "line", "place"),
    [
        (
            """\
            def f(x):
                "Its docstring."
                # mugraph: x=f32[4]
                return x @ x
            """,
            3,
            "directly above f (line 1)",
        ),
        ("# mugraph: x=f32[4]\n\n@wrap\ndef f(x):\n    return x @ x\n", 1, "directly above f (line 3)"),
        ("def f(x):  # mugraph: x=f32[4]\n    return x @ x\n", 1, "directly above f (line 1)"),
        ("def f(x):\n    return x @ x  # mugraph: x=f32[4]\n", 2, "directly above f (line 1)"),
        (
            """\
            class Block(nn.Module):
                width = 4
                # mugraph: x=f32[4]

                def forward(self, x):
                    return x @ x
            """,
            3,
            "directly above Block.forward (line 5)",
        ),
    ],
    ids=["after the docstring", "a gap", "on the head", "behind a statement", "in a class"],
)
def test_a_comment_elsewhere_is_the_reason(text: str, line: int, place: str):
    known = found(text)
    assert known.entries == ()
    (lack,) = known.missing
    said = f"model.py, line {line}: this “# mugraph:” comment is not read here; it belongs {place}"
    assert lack.reason == f"{said}, or in the first line of its body"
    assert without_running("/folder/model.py", known, None).notices == ()  # said once


def test_strides_are_said_after_a_shape():
    spec = TensorSpec("f32", (2, 8, 9, 64), (1536 * 9, 64, 1536, 1))
    text = """
        # mugraph: t=3..9, q=f32[2, 8, t, 64].stride(1536 * t, 64, 1536, 1)
        def f(q):
            return q.exp()
        """
    (entry,) = found(text).entries
    assert entry.arguments == {"q": spec}
    assert parse_spec(spec_text(spec)) == spec


def test_a_dimension_without_a_stride_is_said():
    with pytest.raises(BadShapes, match="needs a stride for each of its 2 dimensions"):
        parse_spec("f32[4, 8].stride(1)")


def test_a_comment_elsewhere_without_a_region_is_a_notice(trace: Callable[..., Trace]):
    text = """
        # mugraph: x=f32[4, 4]
        def f(x):
            y = x @ x
            # mugraph: y=f32[4, 4]
            return y @ y

        # mugraph: z=f32[4]
        """
    traced = trace(text)
    assert [region.status for region in traced.regions] == [None]
    first, second = traced.notices
    assert "comment is not read here; it belongs directly above f" in first
    assert second.endswith("comment is not read; it belongs directly above a function or class")
    assert traced.errors == ()
    assert trace_from_json(trace_to_json(traced)).notices == traced.notices


def test_marks_of_an_edited_file_are_not_pointed_at():
    text = """
        # mugraph: x=f32[4]
        def f(x):
            if kernels.f_fits(x):  # mugraph: 3fa9c21b04
                return kernels.f(x)
            # mugraph: 3fa9c21b04
            else:
                return x @ x
        """
    assert found(text).misplaced == ()


@pytest.mark.parametrize(
    ("head", "body", "names"),
    [
        ("def f(x, w)", "return x @ w", "x w"),
        ("def f(self, x, eps=1e-6, causal=False, mask=None)", "return torch.softmax(x, -1)", "x"),
        ("def f(x: torch.Tensor, n: int, mode: str, config: Config)", "return x @ x", "x"),
        ("def f(x: 'Tensor | None', w: Optional[Tensor] = None, *, v: Float16[Tensor, 'a b'])", "return x @ v", "x v"),
        ("def f(x, heads, dim)", "return x.view(-1, heads, 4).softmax(dim=dim) @ x", "x"),
        ("def f(config, x)", "return x * config.scale @ x", "x"),
        ("def f(x, steps, act)", "for _ in range(steps): x = act(x)\n    return torch.exp(x)", "x"),
        ("def f(x, mode)", "return torch.sum(x @ x) if mode == 'sum' else x", "x"),
        ("def f(batch: dict[str, Tensor], n)", "return torch.exp(batch['x'].view(n))", ""),
        ("def f(x: Any, fn: Callable)", "return x.shape", "x"),
        ("def f(q, k)", "return q.matmul(k)", "q k"),
    ],
)
def test_tensors_among_the_arguments(head: str, body: str, names: str):
    (function,) = ast.parse(f"{head}:\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert tensor_arguments(function) == names.split()


def test_the_reason_names_a_recording_and_types_for_tensors_only():
    (lack,) = found("def f(x, w, heads: int, eps=1e-6):\n    return x @ w\n").missing
    assert "“# mugraph: x=f16[...], w=f16[...]”" in lack.reason
    assert "mugraph record -- python" in lack.reason
    (lack,) = found("def f(batch: dict):\n    return batch['x'] @ batch['w']\n").missing
    assert lack.reason.startswith("no shapes are known; run your program once with: mugraph record -- ")
