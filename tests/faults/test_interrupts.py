"""The short form of `scripts/campaigns/interrupts.py`: some interruptions of every workload, and what the campaign found."""

from __future__ import annotations

import pytest

from tests.faults.interrupts import Subject, subjects

pytestmark = pytest.mark.filterwarnings("ignore")
SUBJECTS = [pytest.param(one, id=one.name) for at, one in enumerate(subjects()) if at % 3 == 0]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_process_goes_on_after_an_interruption(subject: Subject) -> None:
    try:
        told = [subject.interrupt(number) for number in range(1, subject.points, subject.points // 6)]
    finally:
        subject.close()
    assert [f"{one.place}: {one.wrong}" for one in told if one.wrong] == []
    # One that comes into the call of a finalizer is only reported by Python.
    assert "KeyboardInterrupt" in {one.ended for one in told} <= {"KeyboardInterrupt", ""}
