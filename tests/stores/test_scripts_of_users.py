"""Scripts that were written against the contract of conditional stores run as they are."""

from __future__ import annotations

import subprocess
import sys

from tests.stores.contract import child_environment

APPENDS = """
import hashlib, threading, numpy as np, tessarr
from tessarr.storage import ConditionalStore
from tessarr.stores.base import ANY
from tessarr.errors import ConflictError
VALUES, MOMENT = {}, threading.Lock()
tag = lambda v: None if v is None else hashlib.md5(v).hexdigest()
class Bucket(ConditionalStore):                       # one per machine: nothing in common but the values
    def __init__(self, machine): self.machine = machine
    url = property(lambda self: f"{self.machine}://bucket")
    def get(self, key, part=None):
        v = VALUES.get(key); return v if v is None or part is None else v[slice(*part.bounds(len(v)))]
    def version(self, key): return tag(VALUES.get(key))
    def set(self, key, value, *, if_match=ANY):
        with MOMENT:
            if if_match is not ANY and tag(VALUES.get(key)) != if_match: raise ConflictError("changed", key=key)
            VALUES[key] = bytes(value)
    def delete(self, key): VALUES.pop(key, None)
    def list(self): return iter(list(VALUES))
tessarr.create_array(Bucket("a"), shape=(0,), chunks=(4,), dtype="i4")
def work(machine):
    z = tessarr.open_array(Bucket(machine), mode="r+")
    for i in range(40): z.append(np.full(4, 1000 * ord(machine) + i, "i4"))
threads = [threading.Thread(target=work, args=(m,)) for m in "ab"]; [t.start() for t in threads]; [t.join() for t in threads]
print("appended", 80, "found", len(set(tessarr.open_array(Bucket("c"), mode="r")[:].tolist())))
"""


def test_a_store_with_conditional_writes_as_users_wrote_it_loses_no_append() -> None:
    done = subprocess.run(
        [sys.executable, "-c", APPENDS], capture_output=True, text=True, env=child_environment(), check=False
    )
    assert (done.returncode, done.stdout) == (0, "appended 80 found 80\n"), done.stderr


def test_the_names_that_such_scripts_use_are_there() -> None:
    from tessarr.storage import ANY, ConditionalStore
    from tessarr.stores import base
    from tessarr.stores.local.lock import lock_name, temporary_name
    from tessarr.types import ByteRange

    assert base.ANY is ANY
    assert base.ConditionalStore is ConditionalStore
    assert ByteRange(-3).bounds(10) == (7, 10)
    assert lock_name("0") == ".0.tessarr-lock"
    assert temporary_name("0").startswith(".0.")
    assert temporary_name("0").endswith(".tessarr-tmp")
