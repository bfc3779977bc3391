"""A follower of an array behind a network asks cheaply: one conditional request, answered without a body."""

from __future__ import annotations

import numpy as np

import tessarr
from tessarr.stores.fetch import UNCHANGED, Fetched
from tessarr.stores.url import open_url
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS


def test_an_unchanged_document_costs_one_request_and_a_changed_one_no_second(s3_proxy: Proxy) -> None:
    url = f"s3+http://{s3_proxy.address}/bucket/follow"
    z = tessarr.create_array(url, data=np.arange(4), chunks=(4,), storage_options=S3_OPTIONS)
    follower = z.follow(start=-1, timeout=0)
    s3_proxy.clear()
    assert [*follower] == []
    assert s3_proxy.counts() == {"GET": 1}
    z.append([4, 5])
    s3_proxy.clear()
    where, block = next(follower)
    assert (where, block.tolist()) == (slice(4, 6), [4, 5])
    assert s3_proxy.counts() == {"GET": 3}, "the document, the chunk, and whether the document is the same still"


def test_a_conditional_read_of_a_server_is_that(s3_proxy: Proxy) -> None:
    store = open_url(f"s3+http://{s3_proxy.address}/bucket/conditional", storage_options=S3_OPTIONS)
    store.set("k", b"value")
    found = store.get_if_changed("k", None)
    assert isinstance(found, Fetched)
    s3_proxy.clear()
    assert store.get_if_changed("k", found.version) is UNCHANGED
    assert s3_proxy.counts() == {"GET": 1}, "no HEAD: the server compared"
