"""Orders that are left out come to what others come to."""

from __future__ import annotations

import pytest

from tests.simulation import cases
from tests.simulation.cases import World
from tests.simulation.oracle import name_of, observe
from tests.simulation.orders import different, exhaustive
from tests.simulation.simulator import Bucket, Client, Outcome

SAMPLE = {
    World("memory"): ("rechunk", "write_tail"),
    World("memory", 2, True): ("store_model", "publish_merge"),
    World("object"): ("convert_new", "dask_shard"),
    World("object", consolidated=True): ("replace_model", "convert_over"),
    World("generations", 2, True): ("write_chunk", "create_below"),
    World("generations"): ("append", "set_attribute"),
    World("local"): ("append_many", "follow"),
    World("local", 2, True): ("set_attribute", "create"),
}


@pytest.mark.parametrize(("world", "names"), SAMPLE.items(), ids=lambda value: "-".join(map(str, value)))
def test_orders_that_are_left_out_come_to_what_others_come_to(world: World, names: tuple[str, str]) -> None:
    with cases.simulating():
        programs, make = cases.oracle(world, names).programs, cases.maker(world)
        every, found = (
            list(map(_result, outcomes))
            for outcomes in (exhaustive(programs, make, preemptions=1), different(programs, make))
        )
    assert set(found) == set(every)
    assert len(found) < len(every)


def test_an_order_in_which_an_update_is_lost_is_not_left_out() -> None:
    def count(client: Client) -> None:
        client.get("a/other")
        found = client.get("k")
        client.get("b/other")
        client.set("k", bytes([(bytes(found) if found else b"\0")[0] + 1]))
        client.get("c/other")

    every, found = (
        [bytes(outcome.bucket.values["k"]) for outcome in outcomes]
        for outcomes in (exhaustive([count, count], Bucket, preemptions=1), different([count, count], Bucket))
    )
    assert set(found) == set(every) == {b"\x01", b"\x02"}
    assert (len(every), len(found)) == (12, 8)


def _result(outcome: Outcome) -> str:
    return repr(([name_of(result) for result in outcome.results], observe(outcome.bucket.connect("observer"))))
