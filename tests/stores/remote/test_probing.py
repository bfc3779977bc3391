"""A probe of a bucket: what compare-and-swap promises holds, and a server that ignores conditions is found out."""

from __future__ import annotations

from tessarr.stores.url import open_url
from tessarr.tools.probe import probe
from tests.stores.remote.servers import S3_OPTIONS, Server


def test_every_promise_holds_in_a_bucket_and_nothing_is_left(s3: Server) -> None:
    place = f"s3+http://{s3.address}/bucket/probed"
    report = probe(place, seconds=0.4, processes=2, storage_options=S3_OPTIONS)
    assert [(one.text, one.detail) for one in report.promises if not one.holds or not one.expected] == []
    assert [*open_url(place, storage_options=S3_OPTIONS).list()] == []
