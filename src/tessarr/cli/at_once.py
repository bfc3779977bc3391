"""``tessarr copy`` and the like: plan an operation and carry it out at once, in this process."""

from __future__ import annotations

import argparse
from functools import partial

from tessarr.cli.printing import OK, add_jobs, add_verb, note
from tessarr.cli.progress import bar
from tessarr.cli.verbs.plans.plan import OPERATIONS, describe
from tessarr.cli.verbs.plans.run import add_changed_values, leaving, shown
from tessarr.plan.plan import Plan


def add(verbs: object, name: str) -> None:
    """Add the verb of an operation."""
    operation = OPERATIONS[name]
    verb = add_verb(
        verbs,
        name,
        summary=operation.summary,
        text=f"{operation.text}\nFor work on many machines: tessarr plan {name}.",
        examples=operation.examples,
    )
    operation.add(verb)
    add_jobs(verb, "tasks at once")
    add_changed_values(verb)
    verb.add_argument("--dry-run", action="store_true", help="only describe the work")
    verb.set_defaults(run=run, operation=name)


def run(arguments: argparse.Namespace) -> int:
    """Carry out the plan; one that fails or is stopped leaves nothing."""
    plan = OPERATIONS[arguments.operation].make(arguments)
    if arguments.dry_run:
        describe(plan, json=arguments.json)
        return OK
    for notice in plan.notices:
        note(f"note: {notice}")
    hint = f"Nothing is kept. To go on after an error: tessarr plan {arguments.operation} … --save PLAN"
    with leaving():
        try:
            with bar(nbytes=False, lines=True) as progress:
                work = partial(
                    Plan.run,
                    slots=arguments.jobs,
                    progress=progress,
                    allow_changed_values=arguments.allow_changed_values,
                )
                return shown(plan, work, json=arguments.json, place="", hint=hint)
        finally:
            if not plan.status().finished:
                plan.discard()
