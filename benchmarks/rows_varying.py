"""Measure rows V1 and V2: reading and writing elements of varying length, without a file system."""

from __future__ import annotations

import numpy as np
from layouts import FULL
from peers.base import Peer
from task import Task, row

LENGTHS = (4, 32, 128, 512, 1024, 16384)
"""Bytes of an element; the text with characters beyond ASCII has up to two more."""
VARIANTS = [f"{kind} {length}" for kind in ("text", "text beyond ASCII", "bytes") for length in LENGTHS]
NBYTES = (16 if FULL else 1) << 20
CHUNKS = 4


def elements(kind: str, length: int) -> list[str] | list[bytes]:
    """Make the elements of an array: `NBYTES`, but 100,000 of them at most, in an equal number per chunk."""
    count = min(100_000, NBYTES // length) // CHUNKS * CHUNKS
    filling = "xé日😀" * length if kind == "text beyond ASCII" else "x" * length
    texts = []
    for number in range(count):
        encoded = (str(number % 997) + filling).encode()[:length]
        texts.append(encoded.decode(errors="replace"))
    return [text.encode() for text in texts] if kind == "bytes" else texts


def of_objects(items: list[str] | list[bytes]) -> np.ndarray:
    """Make an array of Python objects."""
    values = np.empty(len(items), object)
    values[:] = items
    return values


def task(peer: Peer, variant: str, *, writes: bool) -> Task:
    """Write, or read, all of an array in memory; the limit is numcodecs' codec alone."""
    kind, _, length = variant.rpartition(" ")
    items = elements(kind, int(length))
    values, everything = of_objects(items), (slice(None),)
    if kind != "bytes" and peer.name != "limit":
        values = values.astype(np.dtypes.StringDType())  # what arrays of text have in memory; numcodecs takes objects
    array = peer.create_varying("bytes" if kind == "bytes" else "text", len(items), len(items) // CHUNKS)

    def write() -> None:
        peer.write(array, everything, values)

    def read() -> np.ndarray:
        return peer.read(array, everything)

    def check(_: object) -> None:
        assert read().tolist() == items

    if not writes:
        write()
    return Task(run=write if writes else read, check=check, before=peer.forget)


@row("V1", "read text and bytes", VARIANTS, bar=2.0, limited=True)
def read_varying(peer: Peer, variant: str) -> Task:
    """Read 4 chunks without a compressor from memory."""
    return task(peer, variant, writes=False)


@row("V2", "write text and bytes", VARIANTS, bar=2.0, limited=True)
def write_varying(peer: Peer, variant: str) -> Task:
    """Write 4 chunks without a compressor to memory."""
    return task(peer, variant, writes=True)
