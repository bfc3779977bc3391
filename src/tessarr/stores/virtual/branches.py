"""Sessions of Icechunk: whether a store is one, and branches that URLs open.

What opens a URL and gives nothing back by which to commit, such as a conversion, commits the branch (`committing`, `commits`).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Protocol, TypeVar

from tessarr.common.warn import warn
from tessarr.errors import ConflictError, StoreError, ZarrUserWarning

if TYPE_CHECKING:
    from tessarr.stores.base import Store

P = ParamSpec("P")
R = TypeVar("R")


class Session(Protocol):
    """What is called of a session of Icechunk."""

    @property
    def has_uncommitted_changes(self) -> bool:
        """Whether it has changes that are not committed."""
        ...

    def commit(self, message: str, *, rebase_with: object) -> str:
        """Commit, after others have."""
        ...

    def discard_changes(self) -> None:
        """Forget its changes."""
        ...


class Opened(NamedTuple):
    """The session of a branch that a URL opened."""

    session: Session
    url: str


class Branch:
    """What the copies of the store of a session share: the session ends with it."""


_OPENED: ContextVar[list[Opened] | None] = ContextVar("_OPENED", default=None)
"""What was opened within `committing`."""


def is_session(store: Store) -> bool:
    """Return whether a store writes to an Icechunk session. Imports nothing."""
    inner = getattr(store, "store", None)
    return hasattr(inner, "session") and type(inner).__module__.startswith("icechunk")


def opened(session: Session, url: str) -> Branch | None:
    """Note a session that a URL opened: within `committing` it is committed at the end; elsewhere it warns when it ends with
    changes that are not committed, with the last reference to what is returned."""
    found = _OPENED.get()
    if found is not None:
        found.append(Opened(session, url))
        return None
    branch = Branch()
    weakref.finalize(branch, _warn_of_loss, session, url)
    return branch


def _warn_of_loss(session: Session, url: str) -> None:
    if session.has_uncommitted_changes:
        hint = "call `commit` of the session of the store, which docs/stores-icechunk.md shows"
        warn(f"what was written to {url} was not committed, and is lost: {hint}", ZarrUserWarning)


@contextmanager
def committing(message: str) -> Iterator[None]:
    """Commit the branches of which the block opens a URL, when it ends; after an exception, discard its changes.

    Changes that others have committed meanwhile stay, where they are of other chunks and documents; else `ConflictError` is
    raised. Within another such block this one leaves it to that.
    """
    if _OPENED.get() is not None:
        yield
        return
    found: list[Opened] = []
    token = _OPENED.set(found)
    try:
        yield
        for session, url in found:
            if session.has_uncommitted_changes:
                _commit(session, url, message)
    except BaseException:
        for session, _ in found:
            with suppress(Exception):  # one that is committed has none
                session.discard_changes()
        raise
    finally:
        _OPENED.reset(token)


def commits(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function commit the branches whose URLs it opens."""

    @functools.wraps(function)
    def committed(*args: P.args, **kwargs: P.kwargs) -> R:
        with committing(f"tessarr {function.__name__}"):
            return function(*args, **kwargs)

    return committed


def _commit(session: Session, url: str, message: str) -> None:
    import icechunk

    from tessarr.stores.remote.retry import scrub

    try:
        session.commit(message, rebase_with=icechunk.ConflictDetector())
    except (icechunk.ConflictError, icechunk.RebaseFailedError) as error:
        raise ConflictError(
            "others have committed changes of the same chunks or documents to the branch; nothing of this is stored",
            store=url,
            got=str(error),
            hint="Run it again",
        ) from error
    except icechunk.IcechunkError as error:
        raise StoreError("icechunk cannot commit", store=url, got=scrub(str(error))) from None
