"""Remove and replace nodes in a store where that takes several requests: documents first, then chunks.

Who reads chunks of an array, and looks afterwards whether its document is still there (a copy, a plan, a follower), takes so no
chunk that was removed meanwhile for one of fill value. While there is no document another client could create a node, whose
chunks would be removed with the old ones. Therefore a removal has a claim there from its beginning to its end, with the key of
the claims of transactions (`tessarr.core.claims.intents.CLAIM`): who creates a node looks for one after that, and another
removal begins none. The claim is renewed for every page of keys. One that ends by an error says so in its claim; one that was
killed does not renew it: in both cases who replaces or deletes the node goes on with it, and so does a repair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Self

from tessarr.common import strict_json
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, store_call
from tessarr.core.claims.intents import CLAIM
from tessarr.core.claims.settle import EXPIRE_S
from tessarr.errors import ConflictError, MetadataValidationError
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.stores.base import Store
from tessarr.stores.functions import STAGED
from tessarr.stores.path import prefix_of
from tessarr.types import Buffer

_SINCE, _ID = "removed_since", "removal"
_PAGE = 1000
"""Of so many keys a removal removes the values before it renews its claim: what S3 removes in one request."""
_PAUSES_S = (0.005, 0.02, 0.08, 0.32, 1.28)
"""How long a replacement waits, time after time, for a client to take its document back."""
_RENEW_S = 60
"""After so many seconds a removal renews its claim while it copies."""


class Claim(NamedTuple):
    """What the claim of a removal says."""

    id: str
    since: int
    """When it was stored or renewed, in seconds since 1970; 0: the removal ended by an error."""

    @classmethod
    def parse(cls, value: Buffer | None, key: str) -> Claim | None:
        """Parse the claim stored at `key`; ``None`` for one that is not of a removal."""
        try:
            found = None if value is None else strict_json.loads(bytes(value), key=key)
        except MetadataValidationError:
            return None
        since = found.get(_SINCE) if isinstance(found, dict) else None
        return cls(str(found.get(_ID)), since) if isinstance(found, dict) and isinstance(since, int) else None

    @property
    def is_abandoned(self) -> bool:
        """Whether the removal has ended without coming to its end, as far as its claim says, or this process knows."""
        return self.id in clock.CLOCK.ended or abs(clock.CLOCK.now() - self.since) >= EXPIRE_S

    def dumps(self) -> bytes:
        """Serialise the claim."""
        return strict_json.dumps({_SINCE: self.since, _ID: self.id})


class Removal:
    """One removal of what is at `path`: a context, within which it has the claim. The body removes it; if it raises, the claim
    says so. Entering raises `ConflictError` while another removal goes on there."""

    def __init__(self, store: Store, path: str, owner: str | None = None) -> None:
        """`owner`: the name of those who may go on with each other's removals; without it this client alone."""
        self._store, self._prefix, self._id = store, prefix_of(path), owner or clock.CLOCK.owner()
        self._renewed, self._is_shared = 0, owner is not None
        self._attempt = clock.Attempt()
        self.key = self._prefix + CLAIM

    def call(self, method: str, *arguments: object) -> Call:
        """Make a call of the store, which runs to its end also where the removal is cancelled; no other one goes on before."""
        self._attempt.begin()
        return self._attempt.shielded(store_call(self._store, method, *arguments))

    async def _begin_steps(self) -> None:
        self._renewed = clock.CLOCK.now()
        value = Claim(self._id, self._renewed).dumps()
        if not await self.call("set_if_not_exists", self.key, value):
            await self.call("update", self.key, self._taken_over)

    def _taken_over(self, old: Buffer | None) -> bytes:
        found = Claim.parse(old, self.key)
        if found is not None and found.id != self._id and not found.is_abandoned:
            raise self._conflict(
                "another client is removing or replacing this node",
                f"Try again; if that client was killed, after {EXPIRE_S} s, when `tessarr repair` ends its removal, too",
            )
        return Claim(self._id, clock.CLOCK.now()).dumps()

    async def _renew_steps(self, since: int) -> None:
        def renewed(old: Buffer | None) -> bytes:
            found = Claim.parse(old, self.key)
            if found is None or found.id != self._id:
                raise self._conflict("another client has gone on with this removal", "Look what is there now")
            return Claim(self._id, since).dumps()

        await self.call("update", self.key, renewed)
        self._renewed = since

    async def keep_steps(self, *, always: bool = False) -> None:
        """Renew the claim if it is old, or `always`. Raises `ConflictError` where another client has gone on with it."""
        now = clock.CLOCK.now()
        if always or now - self._renewed >= _RENEW_S:
            await self._renew_steps(now)

    def _conflict(self, what: str, hint: str) -> ConflictError:
        return ConflictError(what, store=self._store.url, path=f"/{self._prefix.rstrip('/')}", key=self.key, hint=hint)

    async def keys_steps(self) -> tuple[list[str], list[str]]:
        """List the keys of documents, and all others but the claim."""
        documents: list[str] = []
        others: list[str] = []
        for key in await self.call("list_prefix", self._prefix):
            if key != self.key:
                (documents if key.rpartition("/")[2] in DOCUMENT_NAMES else others).append(key)
        return documents, others

    async def delete_steps(self, keys: Sequence[str]) -> None:
        """Remove values, page by page."""
        for start in range(0, len(keys), _PAGE):
            if start:
                await self.keep_steps(always=True)
            await self.call("delete_many", keys[start : start + _PAGE])

    async def clear_steps(self) -> None:
        """Remove all that is there but the claim, documents first."""
        documents, others = await self.keys_steps()
        await self.delete_steps(documents)
        await self.delete_steps(others)

    async def put_steps(self, key: str, document: Buffer) -> bool:
        """Store a document of the new node where there is none. Returns whether it is stored.

        Another client that creates a node there finds the claim after that, and takes its document back: that is waited for.
        """
        for pause_s in _PAUSES_S:
            if await self.call("set_if_not_exists", key, document):
                return True
            await clock.CLOCK.pause(pause_s)
        return False

    async def end_steps(self) -> None:
        """Remove the claim."""
        await self.call("delete", self.key)

    async def _end_by_error_steps(self) -> None:
        self._note_end()
        with suppress(Exception):
            await self._renew_steps(0)
            if not any(await self.keys_steps()):
                await self.end_steps()

    async def __aenter__(self) -> Self:
        try:
            await self._begin_steps()
        except BaseException as error:  # the claim may be stored nevertheless
            await self._give_up_steps(type(error))
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            await self._give_up_steps(kind)

    async def _give_up_steps(self, kind: type[BaseException]) -> None:
        if kind is not GeneratorExit:
            await self._end_by_error_steps()
            return
        # Cancelled or interrupted: these steps can await nothing more.
        if self._attempt.ended.is_set():
            self._note_end()
        clock.CLOCK.run_detached(self._end_by_error_steps(), self._attempt)

    def _note_end(self) -> None:
        if not self._is_shared:
            clock.CLOCK.ended.add(self._id)


async def remove_steps(store: Store, path: str) -> None:
    """Remove the node at `path` and everything below it. May be repeated."""
    async with Removal(store, path) as removal:
        await removal.clear_steps()
        await removal.end_steps()


async def replace_steps(store: Store, path: str, new: Mapping[str, Buffer], *, was_group: bool) -> None:
    """Replace the node at `path`, and everything below it, by the documents `new` (key → value, in the order of writing).

    Nothing is removed before all of them are stored under other keys. A group (`was_group`) has no chunks of its own, so that
    its document stays until the new one is stored.
    """
    async with Removal(store, path) as removal:
        documents, others = await removal.keys_steps()
        kept = {key for key in documents if was_group and key in new and key.rpartition("/")[0] == path}
        staged = {f"{prefix_of(path)}{STAGED}/{number}": value for number, value in enumerate(new.values())}
        for key, value in staged.items():
            await removal.call("set", key, value)
        await removal.delete_steps([key for key in documents if key not in kept])
        await removal.delete_steps(others)
        for key, value in new.items():
            if key in kept or not await removal.put_steps(key, value):
                await removal.call("set", key, value)
        await removal.call("delete_many", [*staged, removal.key])


async def was_stopped_steps(store: Store, path: str) -> bool:
    """Whether a removal at `path` has ended, but not come to its end."""
    key = prefix_of(path) + CLAIM
    found = Claim.parse(await store_call(store, "get", key), key)
    return found is not None and found.is_abandoned
