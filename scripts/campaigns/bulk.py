"""Simulate two clients of which one copies, converts, renames, plans or follows, in random orders of their steps.

A number is a place in a shuffled list of such two in every world, of which each has sixteen schedules; after its end the
list begins again, with other schedules. `simulate` draws such clients rarely, and `pairs` comes to them last.
"""

from __future__ import annotations

from campaigns.simulate import trials

from tests.simulation import cases

SUMMARY = "two clients in random orders, of which one copies, converts, renames, plans or follows"

slices, repeat = trials(cases.bulk_trial, "schedules", "pairs")
