"""``tessarr run``: carry out a saved plan, or a part of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from tessarr.cli.places import printable_place, storage_options
from tessarr.cli.printing import OK, PROBLEMS, add_jobs, add_source_storage, add_storage, add_verb, note, print_json
from tessarr.cli.progress import bar
from tessarr.cli.verbs.plans.plan import LIKE_DEST
from tessarr.common.counted import counted
from tessarr.errors import BaseZarrError, ConflictError, FailedTasksError, MetadataValidationError, NodeNotFoundError
from tessarr.plan.executors import LeftRunning
from tessarr.plan.plan import Plan, Status
from tessarr.tools.check.report import Report

FAILURES = (ConflictError, MetadataValidationError, NodeNotFoundError, OSError)
"""Errors of work that is stated well: a source that changed, a plan of another version, a store that refuses."""


class _Array(NamedTuple):
    """The variables of jobs in an array."""

    variable: str
    """Holds the index of a job."""
    of: str
    """Holds how many there are."""
    base: int
    """The index of the first job, where the number of parts is given."""


_SLURM = "SLURM_ARRAY_TASK_"
_ARRAYS = (
    _Array(f"{_SLURM}ID", f"{_SLURM}COUNT", 1),
    _Array("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", 0),
    _Array("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", 0),
)


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "run",
        summary="carry out a plan, or a part of it",
        text="Carry out a plan that 'tessarr plan' saved. What is done is not done again, so run it again after an error.\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 stopped.",
        examples="""
tessarr run PLAN --jobs 4
tessarr run PLAN --dask tcp://scheduler:8786
tessarr run PLAN --part 17/1000
tessarr run PLAN --part            # index and number that Slurm, AWS Batch or Kubernetes set
tessarr run PLAN --part /1000      # their index; such as in: sbatch --array=17,42
tessarr run PLAN --status --json
""",
    )
    verb.add_argument("plan", metavar="PLAN", help="the folder of the plan")
    add_storage(verb)
    add_source_storage(verb, LIKE_DEST)
    how = verb.add_mutually_exclusive_group()
    how.add_argument(
        "--part",
        nargs="?",
        const="",
        metavar="I/N",
        help="part I (from 1) of N; does not finish the plan; /N: I, or nothing: both, as the scheduler of jobs set them",
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
    add_changed_values(verb)
    verb.set_defaults(run=run, failures=FAILURES)


def add_changed_values(verb: argparse.ArgumentParser) -> None:
    """Add the option to use what is read of a source that changes meanwhile."""
    verb.add_argument(
        "--allow-changed-values", action="store_true",
        help="also if chunks of the source are written meanwhile, of which the result then has old or new values",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Carry out the plan, and print how far it is. Raises `ValueError` for options that mean nothing together."""
    if arguments.stage is not None and arguments.part is None:
        raise ValueError("--stage needs --part: which part of the stage")
    if arguments.jobs is not None and (arguments.status or arguments.dask is not None):
        raise ValueError("--jobs is for tasks in this process: leave it out with --dask and --status")
    again = "".join(
        f" --{name} {value}".rstrip()
        for name, value in (("part", arguments.part), ("stage", arguments.stage), ("dask", arguments.dask))
        if value is not None
    )
    return advance(arguments, Plan.status if arguments.status else partial(_carried_out, arguments=arguments), again)


def advance(arguments: argparse.Namespace, work: Callable[[Plan], Status], again: str = "") -> int:
    """Do `work` on the saved plan of the arguments, print how far it is then, and return the exit code.

    `again`: the options of the command that goes on, where the work is stopped.
    """
    plan = Plan.load(
        arguments.plan,
        storage_options=storage_options(arguments.storage),
        source_storage_options=storage_options(arguments.source_storage),
    )
    with leaving():
        try:
            return shown(plan, work, json=arguments.json, place=printable_place(arguments.plan))
        except KeyboardInterrupt:
            note(f"stopped; what is done is kept. Go on with: tessarr run {printable_place(arguments.plan)}{again}")
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


def shown(plan: Plan, work: Callable[[Plan], Status], *, json: bool, place: str, hint: str = "") -> int:
    """Do `work`, print how far the plan is then, and return the exit code.

    `place`: that of the plan, for the command that goes on; `hint`: what to do after an error, where nothing is kept.
    """
    code = OK
    try:
        status = work(plan)
    except FailedTasksError as error:
        error.hint = hint or error.hint
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
        left = "not finished" if status.missing else f"publish the result with: tessarr finish {place}"
        print(f"{status.done:,} of {of} done; {'finished' if status.finished else left}")
    return code


def _carried_out(plan: Plan, arguments: argparse.Namespace) -> Status:
    allowed: bool = arguments.allow_changed_values
    with bar(nbytes=False, lines=True) as progress:
        if arguments.part is not None:
            part, of = part_of(arguments.part, os.environ)
            return plan.run_part(
                part, of, stage=arguments.stage, slots=arguments.jobs, progress=progress, allow_changed_values=allowed
            )
        if arguments.dask is None:
            return plan.run(slots=arguments.jobs, progress=progress, allow_changed_values=allowed)
        with _client(arguments.dask):
            return plan.run("dask", progress=progress, allow_changed_values=allowed)


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


def _number(variable: str, environment: Mapping[str, str]) -> int:
    """Parse a variable of the scheduler of jobs. Raises `ValueError` that names it."""
    text = environment[variable]
    if not text.isdecimal():
        raise ValueError(f"{variable} is not a number: {text!r}")
    return int(text)


def part_of(text: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """Parse ``I/N``, or ``/N`` for the index that Slurm, AWS Batch or Kubernetes set; "" takes N from there, too.

    Raises `ValueError`, also for an array of Slurm with holes, such as that of jobs that are sent again.

    >>> part_of("17/1000", {}), part_of("", {"AWS_BATCH_JOB_ARRAY_INDEX": "0", "AWS_BATCH_JOB_ARRAY_SIZE": "8"})
    ((17, 1000), (1, 8))
    >>> part_of("/1000", {"SLURM_ARRAY_TASK_ID": "17"})
    (17, 1000)
    """
    index, slash, count = text.partition("/")
    if text and not (slash and count.isdecimal() and (not index or index.isdecimal())):
        raise ValueError(f"--part is I/N, such as 17/1000, or /N; got {text!r}")
    if index:
        return int(index), int(count)
    array = next((one for one in _ARRAYS if one.variable in environment), None)
    if array is None:
        raise ValueError(f"--part without I needs one of the variables {', '.join(one.variable for one in _ARRAYS)}")
    number = _number(array.variable, environment)
    if count:
        return number - array.base + 1, int(count)
    if array.of not in environment:
        hint = "Kubernetes does not: set it to that of completions, or " if array.of == "JOB_COMPLETIONS" else ""
        raise ValueError(f"--part needs {array.of}, the number of parts. {hint}write --part /N")
    parts = _number(array.of, environment)
    if not array.variable.startswith(_SLURM):
        return number + 1, parts
    first, step = (int(environment.get(_SLURM + name, 1)) for name in ("MIN", "STEP"))
    if int(environment.get(f"{_SLURM}MAX", first + (parts - 1) * step)) != first + (parts - 1) * step:
        raise ValueError(
            "the array of Slurm has holes, so that its indices are not the numbers of parts: write --part /N"
        )
    return (number - first) // step + 1, parts
