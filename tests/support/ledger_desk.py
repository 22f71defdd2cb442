"""Tables and releases for tests of the ledger."""

import functools
from pathlib import Path

import numpy as np
import pyarrow as pa

import reconpriv as rp
from open_tables import opened

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
KEY = rp.Key(bytes((37 * i + 1) % 256 for i in range(32)))
TABLE = pa.table(
    {
        "sex": ["f", "m"] * 60,
        "age": [30, 31, 40, 41] * 30,
        "result": ["gout", "flu", "flu", "none", "flu"] * 24,
        "payor": ["state", "own", "own"] * 40,
    }
)
FIRST = ("result", ["sex", "payor"])
REVERSE = ("payor", ["sex", "result"])
OLDER = Path(__file__).parents[1] / "unit" / "ledger" / "older"
YEAR_ROLES = {"sensitive": "ill", "public": ["town"]}


def publish(desk, out, roles, *, table=TABLE, key="my.key", policy=POLICY, read=None, **more):
    sensitive, public = roles
    source = opened(table, sensitive=sensitive, public=public, **(read or {}))
    return source.publish(policy, desk / out, key=desk / key, **more)


def older(desk):
    """Two publications of ``ill`` by ``sex`` and ``age``, written before roles were recorded."""
    for name in ("ledger", "trials"):
        (desk / f"my.key.{name}").write_bytes((OLDER / name).read_bytes())
        (desk / f"my.key.{name}").chmod(0o600)
    return TABLE.rename_columns(["sex", "age", "ill", "payor"])


@functools.cache
def year(seed, towns=6, records=3_000):
    rng = np.random.default_rng(seed)
    town = rng.integers(0, towns, records)
    ill = np.where(rng.random(records) < 0.55, "a", rng.choice(list("abcd"), records))
    return pa.table({"town": town, "ill": ill})
