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


def test_there_is_one_loop_that_retries() -> None:
    """For requests of remote stores and calls of a `RetryStore`, by one policy. Only the loop that compares and swaps has
    back-offs too; appends poll for other writers (`core/array_parts/append_reserved.py`), and repeat nothing."""
    takers = {
        (path.relative_to(SOURCE).as_posix(), function.name)
        for path in (SOURCE / "stores").rglob("*.py")
        for function in ast.walk(parsed(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr in {"pause", "back_off_s"}
    }
    assert takers == {
        ("stores/remote/base.py", "with_retries"),
        ("stores/remote/retry.py", "pause"),
        ("stores/compare_and_swap.py", "compare_and_swap"),
    }
    assert {place.partition(":")[0] for place in uses("tessarr.stores.remote.base", {"with_retries"})} == {
        "stores/wrappers/retry.py"
    }
    wrapper = parsed(SOURCE / "stores" / "wrappers" / "retry.py")
    assert not [node for node in ast.walk(wrapper) if isinstance(node, ast.While | ast.For)]


OTHER_LIMITS = {
    "engine/write_chunks.py": "chunks that are encoded at once, by the processors",
    "facade/zarr3/core/common.py": "zarr-python's helper for programs",
    "serve/threaded.py": "connections to the server",
}
"""Limits of other things than requests to stores."""


def test_every_request_has_a_slot_of_the_one_limiter() -> None:
    """That of the origin (`limiter_for`)."""
    takers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("limiter.acquire")
    }
    assert takers == {
        "stores/remote/base.py",
        "stores/virtual/zarr_python.py",  # which leaves retries to the store of zarr-python
    }
    named = uses("asyncio", {"Semaphore", "BoundedSemaphore"}) + uses("threading", {"Semaphore", "BoundedSemaphore"})
    assert {place.partition(":")[0] for place in named} == OTHER_LIMITS.keys()


def test_async_variants_are_written_out() -> None:
    """As a definition, or as the assignment ``x_async = async_variant(x)``, whose arguments type checkers see
    (`tests/typing/async_variants.py`): not by loops over names, edited annotations or arguments taken from ``locals()``."""
    assigned = hidden = 0
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "async_variant":
                assigned += 1
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "locals":
                hidden += 1
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr" and "_async" in ast.unparse(node):
                hidden += 1
            if isinstance(node, ast.Assign):
                hidden += any("__annotations__" in ast.unparse(target) for target in node.targets)
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "async_variant"
            ):
                (made,) = node.value.args
                names = [ast.unparse(target) for target in node.targets]
                assert any(name in (f"{ast.unparse(made).strip('_')}_async", "made") for name in names), names
    assert assigned > 50
    assert not hidden


EXECUTORS = {
    "engine/pool.py": "the threads of the process, for work of the processor",
    "engine/jobs.py": "the threads of one tool, for what the caller allows",
    "plan/executors.py": "the threads of one plan, where the user gives no executor",
    "stores/remote/loop.py": "calls that block for coroutines of remote stores, and their callers",
    "codecs/bytes_to_bytes/blosc.py": "one thread, because c-blosc's own threads end the process after a fork",
    "facade/zarr3/abc/codec.py": "one thread for a codec's coroutine, where the caller's has an event loop already",
}


def test_every_pool_of_threads_has_its_purpose() -> None:
    found = {place.partition(":")[0] for place in uses("concurrent.futures", {"ThreadPoolExecutor"})}
    assert found == EXECUTORS.keys()


# -- writers of documents ----------------------------------------------------------------------------------------------

PUTS = {"set": 2, "set_if": 3, "set_if_not_exists": 2, "set_many": 1, "update": 2, "splice": 2, "replace_prefix": 2}
"""Methods that put values into a store, and the least number of their arguments: ``dict.update`` takes one."""

WRITERS = {
    "core/stored/metadata_io.py": "the writer of metadata documents",
    "core/stored/write_new.py": "its part that creates the documents of new nodes",
    "core/stored/consolidated.py": "its part that updates the copies of documents in consolidated metadata",
    "core/claims/new_nodes.py": "its part that creates documents in transactions",
    "core/claims/settle.py": "its part that replaces documents which a transaction claims, and records of transactions",
    "core/claims/removals.py": "its part that replaces nodes where that takes several requests, and claims of removals",
    "transactions/publication.py": "claims documents for a transaction",
}
"""Modules that put metadata documents. Only the first has a right of its own."""

OTHER_VALUES = {
    "core/array_parts/reservation_io.py": "the reservations beside a v2 document, which is no metadata document",
    "core/claims/claimed_places.py": "claims of plans",
    "core/claims/one_copy.py": "claims of copies",
    "core/stored/move.py": "chunks, and other values without a meaning",
    "engine/write_chunks.py": "chunks",
    "plan/kinds/copying.py": "chunks",
    "plan/markers.py": "markers of tasks that are done, and of what is finished",
    "plan/plan.py": "the manifest of a plan",
    "plan/strategies/regroup.py": "chunks and shards",
    "tools/gc/idle.py": "what a collection of garbage has seen",
    "tools/probe/__init__.py": "values of a probe, below a name of its own",
    "tools/probe/directory.py": "values of a probe",
    "tools/probe/worker.py": "values of a probe",
    "tools/pyramid/pieces.py": "the progress of a pyramid",
    "tools/pyramid/staged_levels.py": "chunks of the levels, after their documents",
    "tools/repair.py": "copies in the backup; chunks from the backup",
    "virtual/parquet_references.py": "references as Parquet, with the documents that belong to them",
    "virtual/references.py": "manifests of chunks, and files of references",
}
"""Modules that put other values than documents into a store."""

FORWARDING = {
    "core/asynchronous/stores.py": "a store of zarr-python as one of ours",
    "facade/zarr3/abc/store.py": "the contract of zarr-python's stores",
    "facade/zarr3/experimental/cache_store.py": "a store of zarr-python's",
    "facade/zarr3/storage/_common.py": "a store of zarr-python's, and a path",
    "facade/zarr3/storage/_inner.py": "a store of zarr-python's",
    "facade/zarr3/storage/_logging.py": "a store of zarr-python's",
    "facade/zarr3/storage/_wrapper.py": "a store of zarr-python's",
    "transactions/overlay.py": "a store that stages values",
    "zarr_python/stores/shape.py": "a store for zarr-python",
}
"""Stores outside the folder of stores: they put what their caller gives them, under the key that it gives."""


def puts(path: Path) -> set[str]:
    """The methods with which a module puts values into a store: called, handed to `store_call`, or handed on as they are."""
    found = set()
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr.removesuffix("_async").removesuffix("_steps")
            if len(node.args) >= PUTS.get(name, 99):
                found.add(name)
        function = ast.unparse(node.func).rpartition(".")[2]
        if function == "update_settled_steps":
            found.add("update")
        if function in {"store_call", "call", "getattr", "gather_calls"} or function.endswith("methodcaller"):
            found |= {
                text.value
                for text in ast.walk(node)
                if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value in PUTS
            }
    return found


def test_the_search_finds_puts(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "store.set(key, b'')\nawait store_call(store, 'update', key, change)\nplace.set_if_not_exists_async(key, data)\n"
        "known.update(other)\nevent.set()\nfunction('splice', 1, 2)\n"
    )
    assert puts(module) == {"set", "update", "set_if_not_exists"}


def test_one_module_writes_documents() -> None:
    """ARCHITECTURE, "Consistency of metadata". Whoever puts values into a store otherwise is listed, with what they are."""
    stores = SOURCE / "stores"
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if stores not in path.parents and puts(path)
    }
    assert sorted(found - {*WRITERS, *OTHER_VALUES, *FORWARDING}) == [], (
        "documents go through core/stored/metadata_io.py"
    )
    assert sorted({*WRITERS, *OTHER_VALUES, *FORWARDING} - found) == [], (
        "puts nothing any more: remove it from the list"
    )


def test_only_the_writer_of_documents_creates_them() -> None:
    users = uses("tessarr.core.stored.write_new", {"write_new_steps"})
    assert {place.partition(":")[0] for place in users} == {"core/stored/metadata_io.py"}
