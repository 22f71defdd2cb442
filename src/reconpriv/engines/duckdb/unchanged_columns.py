"""Which columns of a query are the table's own, unchanged, so their labels still hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb

from reconpriv.engines.duckdb.views import VIEW


def carried_columns(
    connection: duckdb.DuckDBPyConnection, query: str, names: Sequence[str]
) -> dict[str, str]:
    """The columns of a query over ``input`` that are plain columns of it, and which ones.

    Anything uncertain is left out: a label on the wrong values would mislead.
    """
    parsed = json.loads(
        connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0]
    )
    nodes = [statement["node"] for statement in parsed.get("statements", [])]
    if len(nodes) != 1 or not _reads_only_the_table(nodes[0]):
        return {}
    table = nodes[0]["from_table"]
    shown = (table["alias"] or VIEW).lower()
    made: list[tuple[str, str | None]] = []
    for item in nodes[0]["select_list"]:
        outputs = _outputs(item, names, shown)
        if outputs is None:
            return {}
        made += outputs
    called = [name.lower() for name, _ in made]
    if len(set(called)) < len(called):
        return {}  # DuckDB renames one of the two
    return {name: source for name, source in made if source is not None}


def _reads_only_the_table(node: dict[str, Any]) -> bool:
    table = node.get("from_table", {})
    return bool(
        node["type"] == "SELECT_NODE"
        and not node["cte_map"]["map"]
        and table.get("type") == "BASE_TABLE"
        and table["table_name"].lower() == VIEW
        and not table["column_name_alias"]
    )


def _outputs(
    item: dict[str, Any], names: Sequence[str], table: str
) -> list[tuple[str, str | None]] | None:
    """What an item of a SELECT gives: names, each with its source column; None if unclear."""
    if item["class"] == "STAR":
        return None if item["columns"] or item["expr"] is not None else _of_star(item, names)
    if item["class"] == "COLUMN_REF":
        *before, last = (part.lower() for part in item["column_names"])
        # Anything else before the dot may be a column, and what follows a part of it.
        source = next((name for name in names if name.lower() == last), None)
        source = source if not before or before == [table] else None
        return [(item["alias"] or source or item["column_names"][-1], source)]
    if not item["alias"] or _may_be_several(item):
        return None
    return [(item["alias"], None)]


def _may_be_several(part: Any) -> bool:
    """True if an expression holds COLUMNS(…) or unnest(…), which name their own columns."""
    if isinstance(part, list):
        return any(map(_may_be_several, part))
    if not isinstance(part, dict):
        return False
    if part.get("class") == "STAR" or part.get("function_name") == "unnest":
        return True
    return any(map(_may_be_several, part.values()))


def _of_star(item: dict[str, Any], names: Sequence[str]) -> list[tuple[str, str | None]]:
    renamed = {one["key"]["column"].lower(): one["value"] for one in item["rename_list"]}
    changed = {one["key"].lower() for one in item["replace_list"]}
    gone = {name.lower() for name in item["exclude_list"]}
    gone |= {one["column"].lower() for one in item["qualified_exclude_list"]}
    return [
        (renamed.get(name.lower(), name), None if name.lower() in changed else name)
        for name in names
        if name.lower() not in gone
    ]
