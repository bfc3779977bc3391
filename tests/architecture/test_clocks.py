"""No test depends on how quick the machine is: tests count, and wait a minute at least for what must happen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import parsed

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = ("fixtures", "conformance")
"""Programs whose verdict tests assert."""
TESTS = sorted(
    [path for path in (ROOT / "tests").rglob("*.py") if "fixtures" not in path.parts]
    + [ROOT / "scripts" / f"{name}.py" for name in VERDICTS]
)
MINUTE_S = 60
CLOCKS = {
    f"{name}{unit}"
    for name in ("perf_counter", "monotonic", "process_time", "thread_time", "time")
    for unit in ("", "_ns")
}
WAITS = {"acquire", "communicate", "join", "result", "run", "settimeout", "timeout", "wait", "wait_for"}
"""Calls that give up after some seconds: their last positional argument, or ``timeout``."""

LOOKS = {"follow", "follow_async"}
"""Calls that with ``timeout=0`` look once, and wait for nothing."""

MAY_READ_A_CLOCK = {
    "scripts/fixtures.py::check": "a minute in which an array must be refused",
    "tests/waiting.py::until": "a minute, against hanging",
    "tests/waiting.py::until_async": "a minute, against hanging",
    "tests/faults/injection.py::_wait": "a minute, against hanging",
    "tests/stores/remote/servers.py::wait_for": "a minute in which a server must begin to listen",
    "tests/histories/clients.py::now": "when an operation began and ended; the order is judged, and not how long it took",
    "tests/native/test_threads.py::turns": "how long a stress test goes on; nothing is compared with it",
    "tests/serve/load.py::one": "how long requests took, which is reported; nothing is compared with it",
    "tests/serve/load.py::main": "how long a load goes on that a person asked for",
    "tests/test_fuzz.py::spin": "uses up processor time, which is what the tested alarm counts",
}
MAY_GIVE_UP_SOON = {
    "tests/stores/contract.py::change": "the other thread may wait for this update or not; both are right",
    "tests/stores/remote/servers.py::wait_for": "one look of many at a port",
    "tests/stores/remote/servers.py::running": "a server that does not end when it is asked to is killed",
    "tests/stores/remote/test_loop.py::send": "the signal is sent again until it was handled",
    "tests/stores/transformed/test_parts.py::test_a_fetch_from_a_database_is_of_one_moment": "it would wait for itself",
}


def places(path: Path) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Every expression of a file with the innermost function that it is in, and with its parent."""

    def walk(node: ast.AST, place: str) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            inside = place
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = f"{name}::{child.name}"
            yield inside, child, node
            yield from walk(child, inside)

    name = path.relative_to(ROOT).as_posix()
    yield from walk(parsed(path), name)


def reads_clock(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in CLOCKS
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
    ) or (isinstance(node, ast.ImportFrom) and node.module == "time")


def numbers(path: Path) -> dict[str, float]:
    """The constants of a file that are numbers."""
    found = {}
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            value = node.value.value
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(value, int | float):
                    found[target.id] = float(value)
    return found


def seconds(call: ast.AST, known: dict[str, float]) -> float | None:
    """After how many seconds a call gives up, where the source tells."""
    if not isinstance(call, ast.Call):
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [word.value for word in call.keywords if word.arg == "timeout"] if name != "open_url" else []
    if name in LOOKS and [ast.unparse(value) for value in given] == ["0"]:
        return None
    if name in WAITS and call.args and not given:
        given = call.args[-1:]
    for value in given:
        if (
            isinstance(value, ast.Constant)
            and isinstance(value.value, int | float)
            and not isinstance(value.value, bool)
        ):
            return float(value.value)
        if isinstance(value, ast.Name):
            return known.get(value.id)
    return None


def line(place: str, node: ast.AST, _: ast.AST) -> str:
    return f"{place}, line {getattr(node, 'lineno', '?')}"


def gives_up_soon(node: ast.AST, parent: ast.AST, known: dict[str, float]) -> bool:
    """Whether a call waits less than a minute for what must happen; ``not`` before it says that it must not."""
    limit = seconds(node, known)
    return limit is not None and limit < MINUTE_S and not isinstance(parent, ast.UnaryOp)


@pytest.fixture(scope="module")
def every_place() -> list[tuple[dict[str, float], str, ast.AST, ast.AST]]:
    return [(known, *one) for path in TESTS for known in [numbers(path)] for one in places(path)]


def test_no_test_depends_on_elapsed_time(
    every_place: list[tuple[dict[str, float], str, ast.AST, ast.AST]],
) -> None:
    clocks, soon = set(), set()
    for known, place, node, parent in every_place:
        if reads_clock(node) and place not in MAY_READ_A_CLOCK:
            clocks.add(line(place, node, parent))
        if gives_up_soon(node, parent, known) and place not in MAY_GIVE_UP_SOON:
            soon.add(line(place, node, parent))
    assert not clocks, "count, or inject a clock; tests/waiting.py waits for what must happen"
    assert not soon, "a busy machine may need longer: wait PATIENCE_S of tests/waiting.py"


def test_an_array_of_another_writer_may_take_a_minute_to_be_refused() -> None:
    assert numbers(ROOT / "scripts" / "fixtures.py")["ERROR_WITHIN_S"] >= MINUTE_S


def test_the_exceptions_are_needed(every_place: list[tuple[dict[str, float], str, ast.AST, ast.AST]]) -> None:
    found = every_place
    assert {place for _, place, node, _ in found if reads_clock(node)} == set(MAY_READ_A_CLOCK)
    assert {place for known, place, node, parent in found if gives_up_soon(node, parent, known)} == set(
        MAY_GIVE_UP_SOON
    )


@pytest.mark.parametrize(
    "source",
    [
        "began = time.monotonic()",
        "from time import perf_counter",
        "assert done.wait(10)",
        "LIMIT = 5\nthread.join(LIMIT)",
        "process.communicate(timeout=10)",
        "asyncio.run(asyncio.wait_for(call(), 20))",
    ],
)
def test_what_depends_on_time_is_found(source: str) -> None:
    tree = ast.parse(source)
    known = {"LIMIT": 5.0}
    pairs = [(child, node) for node in ast.walk(tree) for child in ast.iter_child_nodes(node)]
    assert any(reads_clock(child) or gives_up_soon(child, node, known) for child, node in pairs)
