"""Simulate three clients of which one changes the length of an array and one replaces, describes, repairs or commits nodes.

A number is a place in a shuffled list of such three in every world, of which each has sixteen schedules; after its end the
list begins again, with other schedules. `simulate` draws such three clients rarely.
"""

from __future__ import annotations

from campaigns.simulate import trials

from tests.simulation import cases

SUMMARY = "three clients, of which one changes the length of an array, and one replaces, describes or repairs nodes"

slices, repeat = trials(cases.triple_trial, "schedules", "triples")
