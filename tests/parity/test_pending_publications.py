"""Other libraries read arrays while a transaction of object storage commits: old or new rows, and complete ones only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.test_pending_appends import READERS, read_by_gdal, with_member
from tests.transactions.test_publish import NEW, OLD, ROWS, Faulty, crash, filled, publish, raised_by


@pytest.mark.parametrize("read", [read for read in READERS if read is not read_by_gdal])  # which reads no shards
def test_a_transaction_that_ends_before_any_of_its_writes_is_read_as_old_or_new(
    read: Callable[[Path, int], Any], tmp_path: Path
) -> None:
    found = []
    for left in range(100):
        bucket = filled(consolidated=False)
        ended = raised_by(lambda bucket=bucket, left=left: publish(Faulty(bucket, left, crash))) is None  # type: ignore[misc]
        place = with_member(tmp_path / str(left), bucket)
        found.append([read(place / path, 3).tolist() for path in ROWS])
        if ended:
            break
    for number in range(len(ROWS)):
        rows = [values[number] for values in found]
        news = rows.index(NEW[number])
        assert rows == [OLD[number]] * news + [NEW[number]] * (len(rows) - news)
