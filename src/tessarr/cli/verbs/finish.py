"""``tessarr finish``: publish the result of a plan whose parts are done."""

from __future__ import annotations

import argparse

from tessarr.cli.places import storage_options
from tessarr.cli.printing import OK, PROBLEMS, add_storage, add_verb, note
from tessarr.cli.verbs.run import show
from tessarr.errors import FailedTasksError
from tessarr.plan.plan import Plan


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "finish",
        summary="publish the result of a plan whose parts are done",
        text="Write the documents of a plan's result, and put it in the place of what was there. May be repeated.\n"
        "The exit code is 1 when tasks are missing.",
        examples="""
tessarr finish PLAN
""",
    )
    verb.add_argument("plan", metavar="PLAN", help="the folder of the plan")
    add_storage(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Finish the plan."""
    plan = Plan.load(arguments.plan, storage_options=storage_options(arguments.storage))
    try:
        status = plan.finish()
    except FailedTasksError as error:
        note(f"error: {error}")
        show(plan.status(), json=arguments.json)
        return PROBLEMS
    show(status, json=arguments.json)
    return OK
