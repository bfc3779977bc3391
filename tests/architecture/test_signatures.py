"""The signature of a function is the one that is written in its file, for editors, type checkers and `inspect` alike."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import tessarr
from tessarr.core.array import Array
from tessarr.core.group import Group

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tessarr"
EDITS = re.compile(r"__annotations__(\[|\.update|\.pop)|__annotations__ =|__signature__ =|\blocals\(\)")


def test_no_annotation_or_signature_is_edited() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number} {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if EDITS.search(line)
    ]
    assert not found, found


FUNCTIONS = ["open", "open_array", "open_group", "create_array", "create", "create_group", "consolidate_metadata"]
METHODS = [Array.append, Array.resize, Group.get, Group.members, Group.create_array, Group.create_group]


@pytest.mark.parametrize("function", [*(getattr(tessarr, name) for name in FUNCTIONS), *METHODS])
def test_a_function_and_its_async_variant_show_the_written_signature(function: object) -> None:
    assert inspect.isfunction(function)
    tree = ast.parse(Path(inspect.getsourcefile(inspect.unwrap(function)) or "").read_text(encoding="utf-8"))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function.__name__
    ]
    assert found, function
    owner = inspect.getmodule(function)
    scope = getattr(owner, function.__qualname__.partition(".")[0])
    variant = getattr(scope if inspect.isclass(scope) else owner, f"{function.__name__}_async")
    for shown in (function, variant):
        signature = inspect.signature(shown)
        assert signature.return_annotation in {ast.unparse(node.returns) for node in found if node.returns is not None}
        assert [*signature.parameters] in [
            [
                arg.arg
                for arg in (
                    *node.args.posonlyargs,
                    *node.args.args,
                    node.args.vararg,
                    *node.args.kwonlyargs,
                    node.args.kwarg,
                )
                if arg
            ]
            for node in found
        ]
    assert inspect.iscoroutinefunction(variant)
    assert not inspect.iscoroutinefunction(function)
