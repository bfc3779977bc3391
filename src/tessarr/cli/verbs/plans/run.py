"""``tessarr run``: carry out a saved plan, or a part of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from functools import partial

from tessarr.cli.places import storage_options
from tessarr.cli.printing import OK, PROBLEMS, add_jobs, add_source_storage, add_storage, add_verb, note, print_json
from tessarr.cli.progress import bar
from tessarr.cli.verbs.plans.plan import LIKE_DEST
from tessarr.common.counted import counted
from tessarr.errors import BaseZarrError, FailedTasksError
from tessarr.plan.executors import LeftRunning
from tessarr.plan.plan import Plan, Status
from tessarr.tools.check.report import Report

_INDEX = {
    "SLURM_ARRAY_TASK_ID": ("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"),
    "AWS_BATCH_JOB_ARRAY_INDEX": ("", ""),
    "JOB_COMPLETION_INDEX": ("", ""),
}
"""Variables that hold the index of a job in its array, and those of the first index and the step where these may differ from
0 and 1."""
_COUNT = ("SLURM_ARRAY_TASK_COUNT", "AWS_BATCH_JOB_ARRAY_SIZE", "JOB_COMPLETIONS")


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "run",
        summary="carry out a plan, or a part of it",
        text="Carry out a plan that 'tessarr plan' saved. What is done is not done again, so run it again after an error.\n"
        "Exit codes: 0 done, 1 tasks failed, 2 wrong usage, 130 stopped.",
        examples="""
tessarr run PLAN --jobs 4
tessarr run PLAN --dask tcp://scheduler:8786
tessarr run PLAN --part 17/1000
tessarr run PLAN --part            # the index that Slurm, AWS Batch or Kubernetes set
tessarr run PLAN --status --json
""",
    )
    verb.add_argument("plan", metavar="PLAN", help="the folder of the plan")
    add_storage(verb)
    add_source_storage(verb, LIKE_DEST)
    how = verb.add_mutually_exclusive_group()
    how.add_argument(
        "--part", nargs="?", const="", metavar="I/N", help="part I (from 1) of N; does not finish the plan"
    )
    verb.add_argument(
        "--stage",
        type=int,
        metavar="K",
        help="with --part: only stage K (from 1), where blocks are fewer than machines",
    )
    how.add_argument("--dask", metavar="ADDRESS", help="run on the dask cluster whose scheduler is there")
    how.add_argument("--status", action="store_true", help="only show how far it is")
    add_jobs(verb, "tasks at once in this process")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry out the plan, and print how far it is. Raises `ValueError` for options that mean nothing together."""
    if arguments.stage is not None and arguments.part is None:
        raise ValueError("--stage needs --part: which part of the stage")
    if arguments.jobs is not None and (arguments.status or arguments.dask is not None):
        raise ValueError("--jobs is for tasks in this process: leave it out with --dask and --status")
    return advance(arguments, Plan.status if arguments.status else partial(_carried_out, arguments=arguments))


def advance(arguments: argparse.Namespace, work: Callable[[Plan], Status]) -> int:
    """Do `work` on the saved plan of the arguments, print how far it is then, and return the exit code."""
    plan = Plan.load(
        arguments.plan,
        storage_options=storage_options(arguments.storage),
        source_storage_options=storage_options(arguments.source_storage),
    )
    with leaving():
        try:
            return shown(plan, work, json=arguments.json)
        except KeyboardInterrupt:
            note(f"stopped; what is done is kept. Go on with: tessarr run {arguments.plan}")
            raise


@contextmanager
def leaving() -> Iterator[None]:
    """End the process at once where the user does not wait for the tasks that run."""
    try:
        yield
    except LeftRunning:
        note("interrupted")
        sys.stdout.flush()
        os._exit(130)  # the end of the interpreter waits for all threads


def shown(plan: Plan, work: Callable[[Plan], Status], *, json: bool) -> int:
    """Do `work`, print how far the plan is then, and return the exit code."""
    code = OK
    try:
        status = work(plan)
    except FailedTasksError as error:
        note(f"error: {error}")
        status, code = plan.status(), PROBLEMS
    result = plan.result() if status.finished and not plan.writes else None
    if isinstance(result, Report) and not result.ok:
        code = PROBLEMS
    if json:
        found = {} if result is None else {"result": result.to_json()}
        print_json(asdict(status) | {"missing": status.missing} | found)
    elif result is not None:
        print(result)
    else:
        of = counted(status.tasks, "task")
        print(f"{status.done} of {of} done; {'finished' if status.finished else 'not finished'}")
    return code


def _carried_out(plan: Plan, arguments: argparse.Namespace) -> Status:
    with bar(nbytes=False, lines=True) as progress:
        if arguments.part is not None:
            part, of = part_of(arguments.part, os.environ)
            return plan.run_part(part, of, stage=arguments.stage, slots=arguments.jobs, progress=progress)
        if arguments.dask is None:
            return plan.run(slots=arguments.jobs, progress=progress)
        with _client(arguments.dask):
            return plan.run("dask", progress=progress)


def _client(address: str) -> AbstractContextManager[object]:
    """Connect to a dask scheduler. Raises `BaseZarrError` where none answers."""
    from distributed import Client

    note(f"connecting to {address}")
    try:
        client: AbstractContextManager[object] = Client(address)
    except (OSError, ValueError) as error:
        raise BaseZarrError(
            "no dask scheduler answers",
            expected="the address that the scheduler printed, such as tcp://10.0.0.1:8786",
            got=f"{address}: {error}",
            hint="Start one with: dask scheduler",
        ) from error
    return client


def part_of(text: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """Parse ``I/N``; "" takes both from the variables of Slurm, AWS Batch or Kubernetes. Raises `ValueError`.

    >>> part_of("17/1000", {}), part_of("", {"AWS_BATCH_JOB_ARRAY_INDEX": "0", "AWS_BATCH_JOB_ARRAY_SIZE": "8"})
    ((17, 1000), (1, 8))
    """
    if text:
        index, _, count = text.partition("/")
        if index.isdigit() and count.isdigit():
            return int(index), int(count)
        raise ValueError(f"--part is I/N, such as 17/1000; got {text!r}")
    for name, (first, step) in _INDEX.items():
        counts = [environment[variable] for variable in _COUNT if variable in environment]
        if name in environment and counts:
            number = int(environment[name]) - int(environment.get(first, 0))
            return number // int(environment.get(step, 1)) + 1, int(counts[0])
    raise ValueError(
        f"--part without I/N needs one of the variables {', '.join(_INDEX)}, and one of {', '.join(_COUNT)}"
    )
