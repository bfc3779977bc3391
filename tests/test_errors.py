"""Errors reach another process whole: pickled as they are, and as dask.distributed pickles them, by tblib."""

from __future__ import annotations

import copy
import errno
import io
import pickle
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import pytest
from tblib import pickling_support

import tessarr.errors
import tessarr.stores.remote.retry
from tessarr.errors import Problem, StoreError, TessarrError

FACTS: dict[str, Any] = {
    "store": "memory://a", "path": "b", "chunk": (1, 2), "key": "b/c/1/2", "codec": "gzip",
    "expected": "one", "got": "two", "hint": "Do it",
}  # fmt: skip


def kinds(kind: type[TessarrError] = TessarrError) -> Iterator[type[TessarrError]]:
    """All classes of ours."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__.startswith("tessarr."):
            yield from kinds(below)


def by_tblib(error: TessarrError) -> bytes:
    """Pickle as tblib does after ``pickling_support.install()``, which would be for the whole process."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dispatch_table = {
        type(error): pickling_support.pickle_exception,
        TracebackType: pickling_support.pickle_traceback,
    }
    pickler.dump(error)
    return file.getvalue()


def raised(error: TessarrError) -> TessarrError:
    try:
        raise error
    except TessarrError as caught:
        return caught


@pytest.mark.parametrize("kind", sorted(set(kinds()), key=repr))
@pytest.mark.parametrize("through", [pickle.dumps, by_tblib])
def test_an_error_of_any_class_is_the_same_after_a_pickle(kind: type[TessarrError], through: Any) -> None:
    error = raised(kind("it failed", **FACTS))
    error.add_note("a note")
    if isinstance(error, OSError):
        error.errno = errno.ENOSPC
    if isinstance(error, tessarr.errors.MetadataValidationError):
        error.problems.append(Problem(("shape",), "type", "no list"))
    if isinstance(error, tessarr.stores.remote.retry.RequestError):
        error.status, error.attempts = 503, 6
    for again in (pickle.loads(through(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)
        assert getattr(again, "errno", None) == getattr(error, "errno", None)
    if through is by_tblib:
        assert pickle.loads(through(error)).__traceback__ is not None


class ThirdPartyError(StoreError):
    """A class whose arguments are not those of `TessarrError`."""

    def __init__(self, number: int, *, name: str) -> None:
        super().__init__(f"{name} {number}")
        self.number = number


@pytest.mark.parametrize("through", [pickle.dumps, by_tblib])
def test_an_error_of_a_class_with_other_arguments_is_the_same_after_a_pickle(through: Any) -> None:
    again = pickle.loads(through(ThirdPartyError(3, name="disk")))
    assert isinstance(again, ThirdPartyError)
    assert (str(again), again.number) == ("disk 3", 3)
