"""A plan: long work on arrays as tasks that run anywhere, in any order, any number of times."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol, Self

from tessarr.common.counted import counted
from tessarr.core.notebook.bar import shows_progress
from tessarr.errors import BaseZarrError, ConflictError, FailedTasksError, UnsupportedOperationError
from tessarr.plan import kinds
from tessarr.plan.executors import Running, Submit, Submits, executor_from, in_turn, stopping, submitted
from tessarr.plan.kinds import RunTasks, kind_of
from tessarr.plan.manifest import DOCUMENT, Manifest, Place
from tessarr.plan.markers import DOCUMENTED, FOLDER, Milestones, Ranges, Receipt, done_in, mark, results_in
from tessarr.plan.publish import options_at, reopenable_url, without_documents
from tessarr.plan.sources import (
    BEFORE,
    Folder,
    check_unchanged,
    check_values,
    options_of_source,
    save_files,
    table_path,
    watch_values,
)
from tessarr.plan.strategies.ready import EndOfStage, Hands, Ready, ReadyOneByOne
from tessarr.plan.task import Begins, Work, Worker
from tessarr.stores.base import Store
from tessarr.stores.path import join, prefix_of
from tessarr.stores.url import StoreLike, store_from
from tessarr.tools.files.open import IN_PLACE
from tessarr.types import JSON, Progress

if TYPE_CHECKING:
    from tessarr.plan.predict import Description
    from tessarr.plan.strategies.simulate import Expected, Workers
    from tessarr.tools.check.report import Report
    from tessarr.tools.digest import Digest

_FINISHED = "finished"
_MARK_SECONDS = 10.0
"""A client writes the markers of ended tasks this often: what is lost with a client is repeated."""


@dataclass(frozen=True, slots=True)
class Status:
    """How far a plan is."""

    tasks: int
    done: int
    finished: bool
    """Whether the result is in place."""

    @property
    def missing(self) -> int:
        """The number of tasks that are not done."""
        return self.tasks - self.done


class Plan:
    """Long work on arrays as tasks, each of which owns whole stored values of the target.

    Made by `tessarr.plan.rechunk` and its like. `run` carries it out here or on an executor; a saved plan is carried out by
    `run_part` on many machines, then `finish`. Each may be repeated: what is done is not done again.

    >>> import tessarr, tessarr.plan
    >>> source = tessarr.array([[1, 2], [3, 4]], chunks=(1, 2), store={})
    >>> target = tessarr.storage.MemoryStore()
    >>> plan = tessarr.plan.rechunk(source, target, path="a", chunks=(2, 1))
    >>> plan.run().finished, tessarr.open_array(target, path="a")[:, 0].tolist()
    (True, [1, 3])
    """

    def __init__(self, manifest: Manifest, work: Work | None = None, written: Folder | None = None) -> None:
        self._manifest = manifest
        self._work = work
        self._written = written
        self._place: tuple[Store, str] | None = None
        self._storage_options: Mapping[str, object] | None = None
        self._source_options: Mapping[str, object] | None = None
        self.notices: tuple[str, ...] = ()
        """What is not kept as it is in the source, found when the plan was made."""
        self._milestones = Milestones(None)
        self._done = Ranges()
        self._results: dict[int, JSON] = {}
        self._has_table = False

    @classmethod
    def load(
        cls, place: StoreLike, *, storage_options: Mapping[str, object] | None = None,
        source_storage_options: Mapping[str, object] | None = None,
    ) -> Self:  # fmt: skip
        """Open the plan that was saved at `place`.

        `storage_options`: for the place of the plan and for that in which it writes; none is for local ones.
        `source_storage_options`: for its source; ``None``: `storage_options`, unless the target is a URL of another scheme.

        Raises `MetadataValidationError` for anything else, and for a plan of another version.
        """
        store, path = store_from(place, mode="r+", storage_options=options_at(place, storage_options))
        prefix = prefix_of(path)
        document = store.get(prefix + DOCUMENT)
        if document is None:
            raise BaseZarrError(
                "no plan is here", store=store.url, path=f"/{path}", hint="Save one with plan.save(place)"
            )
        plan = cls(kinds.load(bytes(document), prefix + DOCUMENT))
        plan._storage_options = storage_options
        source, work = plan._manifest.source.url, plan._manifest.work
        plan._source_options = options_of_source(
            source, "" if work is None else work.url, storage_options, source_storage_options
        )
        plan._settle(store, prefix)
        return plan

    def save(self, place: StoreLike, *, storage_options: Mapping[str, object] | None = None) -> None:
        """Write the plan to a folder: ``plan.json``, ``done/`` for what is done, and the table of the files that were scanned.

        Raises `BaseZarrError` where another plan is, `UnsupportedOperationError` for arrays that only this process has.
        """
        document = self._manifest.dumps()
        store, path = store_from(place, mode="a", storage_options=storage_options)
        prefix = prefix_of(path)
        present = store.get(prefix + DOCUMENT)
        if present is None:
            if self._manifest.kind not in IN_PLACE and isinstance(work := self._opened(), Worker):
                save_files(self._manifest, work.source, (store, path))
            present = document if store.set_if_not_exists(prefix + DOCUMENT, document) else store.get(prefix + DOCUMENT)
        if present != document:
            hint = "Choose another place"
            raise BaseZarrError("another plan is here", store=store.url, path=f"/{path}", hint=hint)
        self._settle(store, prefix)

    def _settle(self, store: Store, prefix: str) -> None:
        self._place = store, prefix
        self._milestones = Milestones(self._place)

    def __repr__(self) -> str:
        manifest = self._manifest
        places = [place.url or "memory" for place in (manifest.source, manifest.target) if place is not None]
        return f"<Plan {manifest.operation} {' → '.join(places)}: {counted(self.tasks, 'task')}>"

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return self._manifest.tasks

    def describe(self) -> Description:
        """Predict what the plan costs: tasks, bytes, requests, objects and memory."""
        return kind_of(self._manifest.operation).describe(self._manifest)

    def status(self) -> Status:
        """Read how far the plan is."""
        self._refresh()
        return self._status()

    def _status(self) -> Status:
        return Status(self.tasks, len(self._done), self._milestones.reached(_FINISHED))

    def _refresh(self) -> None:
        if self._place is None:
            return
        for start, stop in done_in(*self._place, self.tasks):
            self._done.add(start, stop)

    @shows_progress()
    def run(
        self, executor: object = None, *, slots: int | None = None, retries: int = 3, progress: Progress | None = None,
        allow_changed_values: bool = False,
    ) -> Status:  # fmt: skip
        """Carry out all tasks that are not done, and finish.

        `executor`: ``None`` for threads of this process, ``"dask"`` for the current client of dask, such a client, or any
        `concurrent.futures.Executor`. `slots`: tasks at once; by default as many as the executor has. A task that fails is
        repeated up to `retries` times. Ctrl-C waits for the tasks that run, a second one leaves them.
        `allow_changed_values`: as in `finish`.

        Raises `FailedTasksError` naming the tasks that failed; the others are done, and ``run`` again goes on. Raises
        `ConflictError` naming a file that has changed since the plan was made, or an array whose values changed meanwhile.
        """
        self._refresh()
        missing = self._missing(range(self._manifest.blocks))
        self._carry_out(missing, executor, slots, retries, progress, watching=not allow_changed_values)
        return self._finish(allow_changed_values=allow_changed_values)

    @shows_progress()
    def run_part(
        self,
        part: int,
        of: int,
        *,
        stage: int | None = None,
        slots: int | None = None,
        retries: int = 3,
        progress: Progress | None = None,
        allow_changed_values: bool = False,
    ) -> Status:
        """Carry out part number `part` (from 1) of `of` parts, which may run at the same time on many machines.

        A part owns whole blocks, does not finish the plan, and waits for no other. Where blocks are fewer than machines, deal
        one `stage` (from 1) after another instead: each part then has tasks of every block. Raises `FailedTasksError`, also for
        a stage of which all parts of the one before have not ended. `allow_changed_values`: as in `finish`, and the chunks of
        the source are not listed first.
        """
        if not 1 <= part <= of:
            raise ValueError(f"parts are numbered from 1 to {of}, got {part}")
        stages = self._manifest.stages
        if stage is not None and not 1 <= stage <= stages:
            raise ValueError(f"stages are numbered from 1 to {stages}, got {stage}")
        blocks = self._manifest.blocks
        self._refresh()
        if stage is None:
            missing = self._missing(range(blocks * (part - 1) // of, blocks * part // of))
        else:
            missing = self._missing_of_stage(stage - 1, part, of)
        self._carry_out(
            missing, None, slots, retries, progress, removing=stage is None, watching=not allow_changed_values
        )
        return self._status()

    def _carry_out(
        self, missing: Iterable[tuple[int, Iterable[Iterable[int]]]], executor: object, slots: int | None, retries: int,
        progress: Progress | None, *, removing: bool = True, watching: bool = True,
    ) -> None:  # fmt: skip
        """Carry out tasks, block by block and stage by stage. `removing`: what is between the stages goes with each block."""
        if self._milestones.reached(_FINISHED):
            return
        context, count = executor_from(executor, slots)
        if len(self._done) < self.tasks:
            if isinstance(work := self._opened(), Begins):
                try:
                    work.begin(resumed=len(self._done) > 0)
                except ConflictError:
                    if self._milestones.reached(DOCUMENTED):  # by another client, which finishes the plan
                        return
                    raise
            if watching:
                watch_values(self._manifest, work.source, self._milestones)
        failed: dict[int, BaseException] = {}
        unmarked: list[Receipt] = []
        marked_at = time.monotonic()

        def end_of_stage(block: int, last: bool) -> None:
            strategy = self._manifest.locate_block(block)[0].strategy
            if strategy is not None and strategy.name == "staged":
                self._mark(unmarked)  # before what these tasks read is removed
                if last and removing and isinstance(work := self._opened(), Worker):
                    work.end_block(block)

        ready = self._hands(missing, end_of_stage, self._done)
        running: Running[Receipt] = {}

        def take(task: int, receipt: Receipt) -> None:
            unmarked.append(receipt)
            self._done.add(task, task + 1)
            if self._manifest.target is None and self._place is None:
                self._results[task] = receipt.result

        try:
            with context as chosen, stopping(chosen, running, take):
                submit = self._submit(chosen, executor is None)
                for task, result in submitted(submit, ready, count, retries, running):
                    if isinstance(result, BaseException):
                        failed[task] = result
                    else:
                        take(task, result)
                    if progress is not None:
                        failures = f", {len(failed)} failed" if failed else ""
                        progress(len(self._done), self.tasks, f"task {task}{failures}")
                    if time.monotonic() - marked_at > _MARK_SECONDS:
                        self._mark(unmarked)
                        marked_at = time.monotonic()
        finally:
            self._mark(unmarked)
        self._raise_failed(failed)

    def _hands(
        self, missing: Iterable[tuple[int, Iterable[Iterable[int]]]], end_of_stage: EndOfStage, done: Ranges
    ) -> Hands:
        needs = kind_of(self._manifest.operation).needs
        if needs is None or not self.tasks:
            return Ready(missing, end_of_stage)
        return ReadyOneByOne(missing, needs(self._manifest), done)

    def simulate(self, workers: Workers, *, seed: int = 0) -> Expected:
        """Simulate how `workers` carry out the tasks that are not done; nothing is read or written.

        Tasks of a stage count as equal, with the means of what `describe` predicts; where tasks read back what they wrote, that
        is read, too. The same `seed` gives the same result. Raises `UnsupportedOperationError` where workers hardly ever live
        long enough for a task.
        """
        from tessarr.plan.predict import task_costs
        from tessarr.plan.strategies.simulate import simulated

        self._refresh()
        done = Ranges(self._done)
        hands = self._hands(self._missing(range(self._manifest.blocks)), lambda _block, _last: None, done)
        costs = task_costs(self._manifest, self.describe())
        return simulated(workers, hands, costs, lambda task: done.add(task, task + 1), seed)

    def _missing(self, blocks: range) -> Iterator[tuple[int, Iterable[Iterable[int]]]]:
        """Yield blocks, and their tasks that are not done, stage by stage."""
        found = self._manifest.tasks_of_blocks(blocks)
        for block, stages in zip(blocks, found, strict=True):
            yield block, (self._done.missing(tasks.stop, tasks.start) for tasks in stages)

    def _missing_of_stage(self, stage: int, part: int, of: int) -> Iterator[tuple[int, Iterable[Iterable[int]]]]:
        """Yield blocks, and the tasks of one stage that a part has of each. Raises `FailedTasksError`."""
        found = enumerate(self._manifest.tasks_of_blocks(range(self._manifest.blocks)))
        for block, stages in found:
            if stage >= len(stages):
                continue
            if stage and (
                left := list(islice(self._done.missing(stages[stage - 1].stop, stages[stage - 1].start), 20))
            ):
                raise FailedTasksError(
                    f"stage {stage} is not done", dict.fromkeys(left),
                    got=f"tasks missing: {', '.join(map(str, left))}", hint=f"Run all parts of stage {stage} first",
                )  # fmt: skip
            count = len(stages[stage])
            mine = stages[stage][count * (part - 1) // of : count * part // of]
            yield block, [self._done.missing(mine.stop, mine.start)]

    def _raise_failed(self, failed: dict[int, BaseException]) -> None:
        if failed:
            self._refresh()  # another client may have done them
        failed = {task: error for task, error in failed.items() if task not in self._done}
        for error in failed.values():
            if isinstance(error, ConflictError):  # the source changed: running the plan again does not help
                raise error
        if failed:
            first = min(failed)
            raise FailedTasksError(
                f"{len(failed)} of {counted(self.tasks, 'task')} failed",
                failed,
                store=(self._manifest.target or self._manifest.source).url or None,
                got=f"task {first}: {type(failed[first]).__name__}: {failed[first]}",
                hint="Those that ended are kept: run the plan again",
            )

    def _mark(self, receipts: list[Receipt]) -> None:
        if self._place is not None and receipts:
            mark(*self._place, receipts)
            receipts.clear()

    def _submit(self, executor: Submits, here: bool) -> Submit[Receipt]:
        marked = self._place is not None
        if here:
            return partial(executor.submit, in_turn, partial(self._opened().run, marked=marked))
        work, document = RunTasks(self._manifest.operation, self._folder(), marked=marked), self._manifest.dumps()
        return lambda tasks: executor.submit(work, document, *tasks)

    def _folder(self) -> Place | None:
        """Return where workers find the table of the scanned files; that of a plan that is not saved is written now."""
        if self._place is not None:
            folder = Place(reopenable_url(self._place[0]), self._place[1].rstrip("/"))
            return folder if folder.url else None
        work = self._opened()
        if self._manifest.kind in IN_PLACE or not isinstance(work, Worker):
            return None
        if not self._has_table:
            save_files(self._manifest, work.source, (work.store, work.path))
            self._has_table = True
        return self._manifest.work

    def _opened(self) -> Work:
        if self._work is None:
            self._work = kind_of(self._manifest.operation).open(
                self._manifest, self._storage_options, self._source_options, self._place
            )  # fmt: skip
        return self._work

    def finish(self, *, allow_changed_values: bool = False) -> Status:
        """Publish the result: write the documents, and replace what was at the target. May be repeated.

        `allow_changed_values`: also where chunks of the source were written meanwhile, of which the result then has the old or
        the new values.

        Raises `FailedTasksError` naming tasks that are not done, `ConflictError` naming an array whose values changed.
        """
        self._refresh()
        return self._finish(allow_changed_values=allow_changed_values)

    def _finish(self, *, allow_changed_values: bool) -> Status:
        with self._milestones.lock():
            status = self._status()
            if status.finished:
                # of clients that went on meanwhile, or were killed
                self.discard()
                return status
            if status.missing:
                listed = list(islice(self._done.missing(self.tasks), 20))
                more = ", …" if status.missing > len(listed) else ""
                raise FailedTasksError(
                    "the plan is not done", dict.fromkeys(listed),
                    got=f"{counted(status.missing, 'task')} missing: {', '.join(map(str, listed))}{more}",
                    hint="Run the plan, or its missing parts",
                )  # fmt: skip
            work = self._opened()
            if work.source is not None and not self._milestones.reached(DOCUMENTED):
                check_unchanged(work.source)
                if not allow_changed_values:
                    check_values(self._manifest, work.source, self._milestones)
            self._milestones.reach(_FINISHED, work.finish(self._milestones, self._found()))
            return self._status()

    def discard(self) -> None:
        """Remove what the tasks of an unfinished plan wrote. The plan can then only be made again."""
        kind_of(self._manifest.operation).discard(self._manifest, self._storage_options, self._written)

    def result(self) -> Digest | Report:
        """Return what a finished plan found: the `Digest` of a plan that digests, the `Report` of one that checks.

        Raises `UnsupportedOperationError` for a plan that writes, and for one that is not finished.
        """
        parse, found = kind_of(self._manifest.operation).parse, self._milestones.value(_FINISHED)
        if parse is None or not isinstance(found, dict):
            what = "a plan that writes has no result" if parse is None else "the plan is not finished"
            raise UnsupportedOperationError(what, hint="Open its target" if parse is None else "Run it")
        return parse(found)

    @property
    def writes(self) -> bool:
        """Whether the plan writes; if not it has a `result`."""
        return self._manifest.target is not None

    def _found(self) -> dict[int, JSON]:
        """Return what the tasks found, where they write nothing."""
        if self._manifest.target is not None or self._place is None:
            return self._results
        return results_in(*self._place)


class _Idle(Protocol):
    """Say whether no process works below a prefix, as `tessarr.tools.gc.idle.Idle` does."""

    def __call__(self, store: Store, prefix: str) -> bool: ...

    def forget(self, store: Store, prefix: str) -> None: ...


def collect_abandoned(
    store: Store, path: str, idle: _Idle, dry_run: bool, options: Mapping[str, object] | None
) -> tuple[int, int]:
    """Collect what the plan saved at `path` left, for `tessarr.tools.gc`.

    Returns how many values there are, and how many were removed.

    A plan that has begun to finish has no garbage: finishing it is a matter of documents. Markers go first, so that a plan
    that is run again repeats every task.
    """
    prefix = prefix_of(path)
    manifest = kinds.load(bytes(store.get(prefix + DOCUMENT) or b""), prefix + DOCUMENT)
    markers = [key for key in store.list_prefix(prefix) if key.startswith(prefix + FOLDER)]
    files = prefix_of(table_path(manifest, path))
    others = {key for key in store.list_prefix(prefix) if not key.startswith(files)}
    before = f"{prefix}{BEFORE}.json"
    milestones = others - {*markers, prefix + DOCUMENT, before}
    if milestones or manifest.target is None or manifest.work is None or not manifest.work.url:
        return 0, 0
    url = manifest.work.url
    place, at = store_from(url, mode="r" if dry_run else "r+", storage_options=options_at(url, options))
    work = join(at, manifest.work.path)
    written = without_documents(manifest, place, work)
    count = len(markers) + len(written)
    places = ((store, prefix), (place, prefix_of(work)))
    over = [idle(*one) for one in places]
    if dry_run or not count or not all(over):
        return count, 0
    store.delete_many([*markers, before])
    kind_of(manifest.operation).discard(manifest, options, None)
    place.delete_many(written)
    for one in places:
        idle.forget(*one)
    return count, count
