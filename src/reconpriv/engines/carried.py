"""Which columns of a query are the table's own, unchanged, so that their labels still hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb

from reconpriv.engines.sources import VIEW


def carried_columns(
    connection: duckdb.DuckDBPyConnection, query: str, names: Sequence[str]
) -> dict[str, str]:
    """Columns of a query over ``input`` that are plain columns of it, and which they are.

    What cannot be told is left out: a label on the wrong values would mislead.
    """
    parsed = json.loads(
        connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0]
    )
    nodes = [statement["node"] for statement in parsed.get("statements", [])]
    if len(nodes) != 1 or not _reads_only_the_table(nodes[0]):
        return {}
    known = {name.lower(): name for name in names}
    found: dict[str, str] = {}
    for item in nodes[0]["select_list"]:
        if item["class"] == "STAR":
            found |= _of_star(item, names)
        elif item["class"] == "COLUMN_REF" and item["column_names"][-1].lower() in known:
            source = known[item["column_names"][-1].lower()]
            found[item["alias"] or source] = source
    return found


def _reads_only_the_table(node: dict[str, Any]) -> bool:
    table = node.get("from_table", {})
    return bool(
        node["type"] == "SELECT_NODE"
        and not node["cte_map"]["map"]
        and table.get("type") == "BASE_TABLE"
        and table["table_name"].lower() == VIEW
        and not table["column_name_alias"]
    )


def _of_star(item: dict[str, Any], names: Sequence[str]) -> dict[str, str]:
    if item["columns"] or item["expr"] is not None:
        return {}
    renamed = {one["key"]["column"].lower(): one["value"] for one in item["rename_list"]}
    changed = {one["key"].lower() for one in item["replace_list"]}
    return {renamed.get(name.lower(), name): name for name in names if name.lower() not in changed}
