"""All rows, by name. Importing them needs none of the peers."""

from __future__ import annotations

from plans import converting, pyramids, rechunking, scheduling, storing
from plans.row import Row

ROWS: dict[str, Row] = {**rechunking.ROWS, **converting.ROWS, **pyramids.ROWS, **scheduling.ROWS, **storing.ROWS}
