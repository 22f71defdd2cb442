"""Release folders that were edited, damaged or put together wrongly."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

from campaign.case import Case, Generator, Step
from campaign.generators import release
from campaign.generators.damage import damaged
from campaign.place import Place

_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 10**30, "", "x" * 5_000, "\0", "\x1b[31m", "../../my.key", [], {},
    [[]],
    {"a": 1}, "/etc/passwd", "NaN", 0.5, 2, "\ud800", ["a", "a"], [None], "é", float("nan"),
)  # fmt: skip


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON tree."""
    found = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], dict | list):
                waiting.append(node[key])
    return found


def _edit(rng: Random, folder: Path) -> str:
    file = folder / "datapackage.json"
    tree = json.loads(file.read_text(encoding="utf-8"))
    container, key = rng.choice(_places(tree))
    way = rng.randrange(4)
    if way == 0:
        del container[key]
    elif way == 1 and isinstance(container, dict):
        container[rng.choice(("x", "reconpriv", "", "\x1b"))] = container.pop(key)
    elif way == 2 and isinstance(container[key], int | float):
        container[key] = container[key] * rng.choice((-1, 2, 10)) + rng.choice((0, 1))
    else:
        container[key] = rng.choice(_ODD)
    file.write_text(json.dumps(tree), encoding="utf-8", errors="surrogatepass")
    return f"edited: {str(key)[:40]!r}"


def _nest(rng: Random, folder: Path) -> str:
    deep = rng.choice((500, 5_000, 100_000))
    text = rng.choice(
        ('{"a": ' * deep, "[" * deep, '{"reconpriv": ' + "[" * deep + "]" * deep + "}")
    )
    (folder / "datapackage.json").write_text(text)
    return "deep nesting"


def _damage(rng: Random, folder: Path) -> str:
    file = rng.choice(sorted(folder.iterdir()))
    what, content = damaged(rng, file.read_bytes())
    file.write_bytes(content)
    return f"{file.name}: {what}"


def _rearrange(rng: Random, folder: Path) -> str:
    file = rng.choice(sorted(folder.iterdir()))
    way = rng.choice(
        ("removed", "a folder", "a link to nowhere", "a link to itself", "unreadable", "empty")
    )
    file.unlink()
    if way == "a folder":
        file.mkdir()
    elif way == "a link to nowhere":
        file.symlink_to("nowhere")
    elif way == "a link to itself":
        file.symlink_to(file.name)
    elif way == "unreadable":
        os.mkfifo(folder / "other")
    elif way == "empty":
        file.touch()
    return f"{file.name}: {way}"


def _make(rng: Random, place: Place) -> Case:
    folder = release.copy_to(place)
    what = rng.choice((_edit, _edit, _edit, _edit, _damage, _rearrange, _nest))(rng, folder)
    if rng.random() < 0.02:
        shutil.rmtree(folder)
        what = "no folder"
    step = rng.choice(
        (
            Step(("info", "out")),
            Step(("info", "out", "--json")),
            Step(("query", "out", "SELECT count(*) FROM release", "--json")),
            Step(("query", "out", "SELECT region, income, count(*) FROM release GROUP BY ALL")),
            Step(("export", "out", "copy.csv"), writes=release.EXPORTED),
            Step(("report", "out", "-o", "report.html"), writes=("report.html",)),
            Step(
                ("publish", "out", "again", "-s", "income", "--public=all", "--key", "my.key"),
                writes=("again",),
            ),
        )
    )
    return Case(f"{what}; {step.args[0]}", (step,))


MANIFESTS = Generator(
    "release folders",
    "edited, damaged and nested manifests; data files damaged, missing or replaced",
    2.0,
    _make,
    release.prepare,
)
