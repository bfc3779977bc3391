"""``tessarr repair``: repair problems that a check found."""

from __future__ import annotations

import argparse

from tessarr.cli.places import open_store
from tessarr.cli.printing import OK, PROBLEMS, add_place, add_verb, print_json
from tessarr.cli.progress import bar
from tessarr.cli.verbs.check import add_level
from tessarr.tools.check import RULES, check
from tessarr.tools.repair import repair, restore


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "repair",
        summary="repair problems that a check found",
        text="List the possible repairs, and with --apply carry them out. Replaced values are kept in the store.\n"
        "The exit code is 1 when problems remain, or a repair failed.",
        examples="""
tessarr repair data.zarr
tessarr repair data.zarr --apply
tessarr repair data.zarr --rule CONS-STALE --apply
tessarr repair data.zarr --undo __tessarr_repair/1
""",
    )
    add_place(verb)
    verb.add_argument("--apply", action="store_true", help="carry out the repairs; without this they are only listed")
    verb.add_argument(
        "--rule", action="append", default=[], metavar="RULE", help="only findings of this rule (may be repeated)"
    )
    add_level(verb)
    verb.add_argument(
        "--give-up-data", action="store_true", help="also move damaged chunks away; their values become the fill value"
    )
    verb.add_argument("--undo", metavar="BACKUP", help="restore the values that a repair replaced, from its backup")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the planned or finished repairs."""
    unknown = [rule for rule in arguments.rule if rule not in RULES]
    if unknown:
        raise ValueError(f"unknown rule {', '.join(unknown)}; there is {', '.join(RULES)}")
    store, path = open_store(
        arguments.place, arguments.path, storage=arguments.storage, writable=arguments.apply or bool(arguments.undo)
    )
    if arguments.undo:
        keys = restore(store, arguments.undo)
        store.close()
        if arguments.json:
            print_json({"restored": keys})
        else:
            print("\n".join([f"{len(keys)} values are restored", *(f"  {key}" for key in keys)]))
        return OK if keys else PROBLEMS
    with bar(nbytes=False) as progress:
        level = None if arguments.level == "documents" else arguments.level
        report = check(store, path=path, data=level, progress=progress)
    result = repair(
        report, store, dry_run=not arguments.apply, rules=tuple(arguments.rule), give_up_data=arguments.give_up_data
    )
    store.close()
    if arguments.json:
        print_json(result.to_json())
    else:
        print(result)
        if result.steps and not arguments.apply:
            print("nothing was changed; repeat with --apply to carry out the repairs")
        elif not result.steps:
            print(
                "nothing to repair"
                if report.ok
                else f"the problems found cannot be repaired; see: tessarr check {arguments.place}"
            )
    return OK if result.ok and (arguments.apply or not result.steps) else PROBLEMS
