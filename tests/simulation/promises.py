"""All operations of simulated clients, in the order in which they were added, and what each promises."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from tests.simulation import bulk_operations as bulk
from tests.simulation import operations as of
from tests.simulation.operations import Operation

_FIRST: tuple[Operation, ...] = (
    *(
        of.append,
        of.append_many,
        of.grow,
        of.shrink,
        of.write_part,
        of.write_element,
        of.write_chunk,
        of.clear_chunk,
        of.clear_part,
    ),
    *(
        of.write_shard,
        of.set_attribute,
        of.set_same_attribute,
        of.create,
        of.create_below,
        of.create_group,
        of.require,
        of.overwrite,
    ),
    *(
        of.delete,
        of.delete_group,
        of.move,
        of.consolidate,
        of.store_model,
        of.replace_model,
        of.migrate_all,
        of.repair_all,
        of.rechunk,
    ),
    *(of.read_chunk, of.read_shard),
)
_TRANSACTIONS: tuple[Operation, ...] = (
    of.transact,
    of.transact_append,
    of.transact_nodes,
    of.transact_merge,
    of.transact_read,
)
_PUBLISHING: tuple[Operation, ...] = (of.publish, of.publish_merge, of.publish_sum)
_LATER: tuple[Operation, ...] = (*_TRANSACTIONS, of.append_to_shard, of.create_other, of.replace_root)
_MOVING: tuple[Operation, ...] = (of.tx_move, of.tx_delete_group)
_BESIDE: tuple[Operation, ...] = (*_MOVING, of.read_snapshot)
_BULK: tuple[Operation, ...] = (
    *(bulk.appender, bulk.follow, bulk.follow_together, bulk.rename, bulk.put_attributes, bulk.delete_attribute),
    *(bulk.copy_keys, bulk.copy_keys_over, bulk.copy_new, bulk.copy_over, bulk.convert_new, bulk.convert_over),
    *(bulk.plan_new, bulk.plan_over, bulk.plan_shared, bulk.dask_store, bulk.dask_shard),
    *(bulk.xarray_create, bulk.xarray_append, bulk.xarray_region, bulk.tx_xarray_append, bulk.tx_xarray_region),
)

ALL: dict[str, Operation] = {
    operation.__name__: operation
    for operation in (
        *_FIRST,
        *_LATER,
        *_PUBLISHING,
        of.publish_nodes,
        of.transact_swap,
        of.write_tail,
        *_BESIDE,
        *_BULK,
    )
}
LATER = frozenset(operation.__name__ for operation in _LATER)
"""Operations whose pairs come after all others, so that the numbers in the log stay those of the same pairs."""
LAST = frozenset(operation.__name__ for operation in _PUBLISHING)
"""Operations whose pairs come after those of `LATER`, likewise."""
NEWEST = frozenset({"publish_nodes"})
"""Operations whose pairs come after those of `LAST`, likewise."""
SWAPPING = frozenset({"transact_swap"})
"""Operations whose pairs come after those of `NEWEST`, likewise."""
TAIL = frozenset({"write_tail"})
"""Operations whose pairs come after those of `SWAPPING`."""
BESIDE = frozenset(operation.__name__ for operation in _BESIDE)
"""Operations whose pairs come after those of `TAIL`."""
BULK = frozenset(operation.__name__ for operation in _BULK)
"""Operations whose pairs come after those of `BESIDE`, in mixed order, so that some of them are of every kind."""
RANKS = (LATER, LAST, NEWEST, SWAPPING, TAIL, BESIDE, BULK)
LOCAL = SWAPPING | {"plan_shared"}
"""Operations of local files alone."""
MANY_STEPS = frozenset(operation.__name__ for operation in bulk.IN_STEPS) | {
    *("appender", "follow", "follow_together", "dask_store", "plan_shared"),
}
"""Operations of more than two steps, two of which are not judged beside a third client."""
TRANSACTIONS = frozenset(
    operation.__name__ for operation in (*_TRANSACTIONS, *_MOVING, bulk.tx_xarray_append, bulk.tx_xarray_region)
)

ATOMIC = frozenset(
    {
        *(
            of.append,
            of.append_many,
            of.grow,
            of.write_part,
            of.write_element,
            of.write_chunk,
            of.clear_chunk,
            of.clear_part,
            of.write_shard,
        ),
        *(
            of.set_attribute,
            of.set_same_attribute,
            of.require,
            of.read_chunk,
            of.read_shard,
            of.append_to_shard,
            *_TRANSACTIONS,
            *_PUBLISHING,
            of.publish_nodes,
            of.transact_swap,
            of.write_tail,
            *_BESIDE,
            *(bulk.appender, bulk.follow, bulk.follow_together, bulk.put_attributes, bulk.delete_attribute),
            *(bulk.dask_store, bulk.dask_shard, bulk.xarray_region, bulk.tx_xarray_append, bulk.tx_xarray_region),
        ),
    }
)
"""Operations of which a client that dies leaves each step done or not."""


ATOMICALLY_CHANGED = frozenset({"memory", "local"})
"""Kinds of places in which a node with all below it is removed, replaced and moved in one step."""
EVERYWHERE = frozenset({"memory", "local", "object", "generations"})
REQUESTS = EVERYWHERE - ATOMICALLY_CHANGED


REPLACING = frozenset({"copy_over", "copy_keys_over", "convert_over", "plan_over"})
"""Operations that replace an array by another one with values."""

SETTING_ATTRIBUTES = frozenset({"set_attribute", "set_same_attribute", "put_attributes", "delete_attribute"})

OTHER_CHUNKS = frozenset({"plan_over"})
"""Operations that replace an array by one with other chunks."""
BLIND = frozenset({"write_chunk", "write_tail", "dask_store"})
"""Operations that store whole chunks of the array that they opened: of one with other chunks, that has replaced it since, these
chunks cannot be read. That is promised nowhere ("do not replace what others write"), and is an error, not a wrong value."""


class Unpromised(NamedTuple):
    """Why what two operations come to together need not be serial: it is whole all the same."""

    one: str
    others: frozenset[str]
    kinds: frozenset[str]
    """The kinds of worlds in which that is so."""
    reason: str
    formats: Container[int] = (2, 3)


UNPROMISED = (
    Unpromised(
        "move",
        frozenset(
            {"delete_group", "move", "replace_model", "write_shard", "append_to_shard", "repair_all", "migrate_all"}
        )
        | {"rename", "dask_shard"}
        | LAST
        | NEWEST,
        REQUESTS,
        "object storage has no conditional removal: a move is noticed up to the last comparison of versions",
    ),
    Unpromised(
        "migrate_all",
        frozenset({"overwrite", "delete", "delete_group", "replace_model"}),
        REQUESTS,
        "to remove a node takes several requests, between which a migration describes it",
    ),
    Unpromised(
        "publish_nodes",
        frozenset({"delete_group", "replace_model"}),
        REQUESTS,
        "to remove a group takes several requests, between which a node is created in it",
    ),
    Unpromised(
        "overwrite",
        frozenset({"append", "append_many", "appender"}),
        REQUESTS,
        "to replace a node takes several requests, and reservations of v2 are an object of their own",
    ),
    Unpromised(
        "overwrite",
        frozenset({"dask_store"}),
        REQUESTS,
        "to replace a node takes several requests, each of which removes a chunk",
    ),
    Unpromised(
        "read_snapshot",
        frozenset({"overwrite"}),
        REQUESTS,
        "to replace a node takes several requests, and a snapshot shows the moment between two",
    ),
    *(
        Unpromised(
            one,
            frozenset(
                {
                    "append",
                    "append_many",
                    "appender",
                    "grow",
                    "shrink",
                    "migrate_all",
                    "repair_all",
                }
            )
            | LAST
            | NEWEST,
            REQUESTS,
            "to remove a node and to replace it take several requests, without conditions",
        )
        for one in sorted(REPLACING)
    ),
    Unpromised(
        "copy_keys_over",
        REPLACING | {"overwrite", "delete"},
        REQUESTS,
        "keys are replaced as they are, without a look at who removes or replaces the node",
    ),
    Unpromised(
        "plan_over",
        frozenset({"copy_over"}),
        REQUESTS,
        "a copy replaces the array first, and then writes chunks, which an array with other chunks in its place cannot read",
    ),
    *(
        Unpromised(
            one,
            SETTING_ATTRIBUTES,
            REQUESTS,
            "attributes that are set while the old node is removed are in the way of the new one until their writer takes"
            " them back: an error, after which nothing is there",
            formats=(2,),
        )
        for one in ("plan_over", "convert_over")
    ),
    Unpromised(
        "tx_move",
        SETTING_ATTRIBUTES,
        ATOMICALLY_CHANGED,
        "attributes are a document of their own, which may have been moved when its writer looks for the node: its error says"
        " so",
        formats=(2,),
    ),
    Unpromised(
        "read_snapshot",
        REPLACING,
        REQUESTS,
        "to replace a node takes several requests, and who reads sees what is between two",
    ),
    Unpromised(
        "rename",
        frozenset(
            {
                "copy_keys",
                "plan_new",
                "rename",
                "delete_group",
                "replace_model",
                "write_shard",
                "append_to_shard",
                "dask_shard",
            }
        )
        | {"repair_all", "migrate_all"}
        | LAST
        | NEWEST,
        REQUESTS,
        "as a move",
    ),
    Unpromised(
        "copy_keys_over",
        frozenset({"append", "append_many", "appender", "grow", "shrink", "transact_append"}) | LAST | NEWEST,
        EVERYWHERE,
        "keys are replaced as they are, without the locks of the arrays that they are of",
    ),
    Unpromised(
        "copy_keys",
        frozenset({"convert_new", "copy_new", "plan_new", "transact_nodes", "publish_nodes"}),
        EVERYWHERE,
        "keys are copied as they are, and who creates the node meanwhile is not waited for: both may fail, and leave a group",
    ),
    Unpromised(
        "plan_new",
        frozenset({"convert_new", "copy_new", "repair_all"}),
        EVERYWHERE,
        "of two clients that create at one path both may fail, and what a plan has written stays until it is discarded",
    ),
    Unpromised(
        "convert_new",
        frozenset({"create_other"}),
        REQUESTS,
        "of two clients that create at one path both may fail, and a group in which there was another document stays",
    ),
    Unpromised(
        "xarray_append",
        frozenset({"xarray_append"}),
        EVERYWHERE,
        "variables are extended one after the other, for one writer at a time; transactions are for more",
    ),
    Unpromised(
        "repair_all",
        frozenset({"copy_keys"}),
        EVERYWHERE,
        "a repair creates the group that is missing above members, and keys are copied members first",
    ),
    Unpromised(
        "replace_root",
        frozenset({"copy_keys", "copy_new", "convert_new", "plan_new", "plan_shared", "xarray_create", "rename"})
        | REPLACING,
        EVERYWHERE,
        "a root is replaced entry by entry, and what is created below it by several documents",
    ),
    Unpromised(
        "migrate_all",
        frozenset({"xarray_create"}),
        EVERYWHERE,
        "who writes several nodes while they are migrated is told so, and leaves what is written until then",
    ),
    Unpromised(
        "migrate_all",
        frozenset({"create_below"}),
        EVERYWHERE,
        "missing groups and the node below are created one after the other, and may be of two formats",
    ),
    Unpromised(
        "create_other",
        frozenset({"migrate_all", "transact_nodes"}),
        EVERYWHERE,
        "a migration changes which format is the other one; a transaction compares documents before it stores its own",
    ),
    Unpromised(
        "replace_root",
        frozenset({"store_model", "rechunk", "create_group", "create_below", "migrate_all", "repair_all"}),
        EVERYWHERE,
        "a root is replaced entry by entry, and what is created below it by several documents",
    ),
    Unpromised(
        "replace_root",
        frozenset({"move"}),
        frozenset({"local"}),
        "a root is replaced entry by entry, and what is moved to a new entry meanwhile stays",
    ),
    Unpromised(
        "replace_root",
        frozenset(ALL),
        REQUESTS,
        "to replace a root takes several requests",
    ),
    Unpromised(
        "repair_all",
        frozenset({"store_model"}),
        EVERYWHERE,
        "a repair creates the group that is missing above members, and a hierarchy is stored members first",
    ),
    Unpromised(
        "repair_all",
        frozenset({"delete", "delete_group", "overwrite", "replace_model"}),
        REQUESTS,
        "a repair finds a node that is half removed, and completes it",
    ),
)


VOIDED: dict[str, tuple[str, ...]] = {"publish": ("a", "g/b"), "publish_merge": ("g/b",), "publish_nodes": ("g/b",)}
"""Transactions of object storage, and the arrays in which one that failed may leave its rows, as fill value: those to which
another client has appended behind them."""
