"""What only one module of the package does, so that it is done in one way."""

from __future__ import annotations

import ast
from pathlib import Path

from .sources import parsed

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tessarr"


def uses(module: str, names: set[str]) -> list[str]:
    """``file:line`` of every use of `names` of `module` in the package, imported one by one or through the module."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            by_attribute = isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == module
            by_import = (
                isinstance(node, ast.ImportFrom) and node.module == module and names & {a.name for a in node.names}
            )
            if by_attribute or by_import:
                assert isinstance(node, ast.Attribute | ast.ImportFrom)
                found.append(f"{path.relative_to(SOURCE).as_posix()}:{node.lineno}")
    return found


def test_only_one_module_issues_warnings() -> None:
    """Because it knows the caller's line; ``warnings.warn`` would name one of ours."""
    assert {place.partition(":")[0] for place in uses("warnings", {"warn", "warn_explicit"})} == {"common/warn.py"}


def test_there_is_one_loop_that_compares_and_swaps() -> None:
    """For stores that block and for those that are awaited."""
    tree = ast.parse((SOURCE / "stores" / "compare_and_swap.py").read_text(encoding="utf-8"))
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
    assert len(loops) == 1
    uses_it = uses("tessarr.stores.compare_and_swap", {"compare_and_swap"})
    assert {place.partition(":")[0] for place in uses_it} == {
        "stores/functions.py",
        "stores/database/server.py",
        "stores/remote/base.py",
    }


EXECUTORS = {
    "engine/pool.py": "the threads of the process, for work of the processor",
    "engine/jobs.py": "the threads of one tool, for what the caller allows",
    "stores/remote/loop.py": "calls that block for coroutines of remote stores, and their callers",
    "codecs/bytes_to_bytes/blosc.py": "one thread, because c-blosc's own threads end the process after a fork",
    "facade/zarr3/abc/codec.py": "one thread for a codec's coroutine, where the caller's has an event loop already",
}


def test_every_pool_of_threads_has_its_purpose() -> None:
    found = {place.partition(":")[0] for place in uses("concurrent.futures", {"ThreadPoolExecutor"})}
    assert found == EXECUTORS.keys()
