"""`Any` switches type checking off: its number in the package only falls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
CEILING = 948
"""How many times the word `Any` may occur in the package, imports included. Lower it with the number; never raise it."""
SLACK = 5
"""How far the number may fall before the ceiling has to follow."""
ANY = re.compile(r"\bAny\b")


def occurrences() -> dict[str, int]:
    """Path below `src` → occurrences of the word `Any`, the largest numbers first."""
    files = sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi")])
    counts = {path.relative_to(SOURCE).as_posix(): len(ANY.findall(path.read_text(encoding="utf-8"))) for path in files}
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def verdict(total: int, ceiling: int) -> str | None:
    """What is wrong with `total` occurrences under `ceiling`; ``None`` if nothing is."""
    if total > ceiling:
        return f"{total} times Any, {total - ceiling} above the ceiling: name the type, or use object for what is passed on"
    if total < ceiling - SLACK:
        return f"{total} times Any: lower CEILING from {ceiling} to {total}"
    return None


def test_the_number_of_any_only_falls() -> None:
    counts = occurrences()
    wrong = verdict(sum(counts.values()), CEILING)
    assert wrong is None, "\n".join([wrong or "", *(f"{n:4} {path}" for path, n in [*counts.items()][:20])])


@pytest.mark.parametrize(
    ("total", "expected"), [(101, "above the ceiling"), (100, None), (95, None), (94, "lower CEILING from 100 to 94")]
)
def test_the_ceiling_follows_the_number(total: int, expected: str | None) -> None:
    found = verdict(total, 100)
    assert found is None if expected is None else expected in (found or "")
