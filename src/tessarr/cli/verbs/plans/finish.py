"""``tessarr finish``: publish the result of a plan whose parts are done."""

from __future__ import annotations

import argparse
from functools import partial

from tessarr.cli.printing import add_source_storage, add_storage, add_verb
from tessarr.cli.verbs.plans.plan import LIKE_DEST
from tessarr.cli.verbs.plans.run import FAILURES, add_changed_values, advance
from tessarr.plan.plan import Plan


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "finish",
        summary="publish the result of a plan whose parts are done",
        text="Write the documents of a plan's result, and put it in the place of what was there. May be repeated.\n"
        "The exit code is 1 when tasks are missing, and as for run otherwise.",
        examples="""
tessarr finish PLAN
""",
    )
    verb.add_argument("plan", metavar="PLAN", help="the folder of the plan")
    add_storage(verb)
    add_source_storage(verb, LIKE_DEST)
    add_changed_values(verb)
    verb.set_defaults(run=run, failures=FAILURES)


def run(arguments: argparse.Namespace) -> int:
    """Finish the plan."""
    return advance(arguments, partial(Plan.finish, allow_changed_values=arguments.allow_changed_values))
