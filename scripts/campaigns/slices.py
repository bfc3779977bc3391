"""What a campaign tells of a part of its work."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Slice:
    """What was done up to the number `to`, without it."""

    to: int
    figures: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def count(self, figure: str, times: int = 1) -> None:
        """Add to a figure."""
        self.figures[figure] = self.figures.get(figure, 0) + times

    def find(self, number: int, what: str) -> None:
        """Note what is wrong; `number` repeats it."""
        self.findings.append(f"--repeat {number}: {what}")
