"""Opening a path in Spark, with the types that the other engine gives it."""

from __future__ import annotations

import re
from typing import Any

from reconpriv.datasets import dataset_path
from reconpriv.errors import InputError

_EXAMPLE = "example:"
_LOSSLESS = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP_NTZ")


def read_path(spark: Any, path: str, sql: str | None) -> Any:
    """A Parquet, ORC, CSV or JSON-lines path that Spark can read, or a query over it."""
    if path.startswith(_EXAMPLE):
        path = str(dataset_path(path.removeprefix(_EXAMPLE)))
    if path == "-":
        raise InputError("Spark cannot read standard input.", hint="Use --engine duckdb.")
    ending = re.sub(r"\.gz$", "", path.rstrip("/").lower()).rsplit("/", 1)[-1]
    if ending.endswith((".csv", ".tsv")):
        frame = _typed_csv(spark, path, "\t" if ending.endswith(".tsv") else ",")
    elif ending.endswith((".jsonl", ".ndjson", ".json")):
        frame = spark.read.json(path)
    elif ending.endswith(".orc"):
        frame = spark.read.orc(path)
    else:
        frame = spark.read.parquet(path)
    if sql is None:
        return frame
    if spark.catalog.tableExists("input"):
        raise InputError("The Spark session has a table called input already.")
    frame.createTempView("input")
    return spark.sql(sql)


def _typed_csv(spark: Any, path: str, delimiter: str) -> Any:
    """Give a column a type only where every text is that type's own spelling."""
    text = (
        spark.read.option("header", True)
        .option("sep", delimiter)
        .option("escape", '"')
        .option("multiLine", True)
        .option("mode", "FAILFAST")
        .csv(path)
    )
    quoted = ["`" + name.replace("`", "``") + "`" for name in text.columns]
    checks = [
        f"count_if(CAST(try_cast({name} AS {kind}) AS STRING) IS DISTINCT FROM {name}"
        f" AND {name} IS NOT NULL) = 0 AND count({name}) > 0"
        for name in quoted
        for kind in _LOSSLESS
    ]
    fits = list(text.selectExpr(*(f"{check} AS k{i}" for i, check in enumerate(checks))).first())
    chosen = []
    for i, name in enumerate(quoted):
        mine = fits[i * len(_LOSSLESS) : (i + 1) * len(_LOSSLESS)]
        kind = next((k for k, fit in zip(_LOSSLESS, mine, strict=True) if fit), None)
        chosen.append(f"CAST({name} AS {kind}) AS {name}" if kind else name)
    return text.selectExpr(*chosen)
