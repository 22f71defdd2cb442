"""CSV and JSON lines: broken quotes, odd bytes, odd headers, long and wide tables."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from random import Random

from campaign.case import Case, Generator
from campaign.generators.damage import damaged
from campaign.generators.tables import NAMES, Pair, Row, reading, rows, same_groups
from campaign.place import Place

_ODD = (
    "\0",
    "\x1b[31m",
    "\x07",
    "\r",
    "\n",
    '"',
    "'",
    ",",
    ";",
    "\t",
    "\ufeff",
    "\u202e",
    "😀",
    "\\",
)


def _csv(records: Iterable[Row], names: Iterable[str] = NAMES) -> str:
    lines = [",".join(names)]
    for region, age, note, income in records:
        quoted = region.replace('"', '""')
        lines.append(f'"{quoted}",{age},{note},{income}')
    return "\n".join(lines) + "\n"


def _odd_characters(rng: Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 2, 4))):
        # The header and the first lines are where it hurts.
        place = rng.randrange(rng.choice((30, 200, len(text))))
        text = text[:place] + rng.choice(_ODD) + text[place:]
    return text


def _header(rng: Random, text: str) -> str:
    _, _, rest = text.partition("\n")
    names = list(NAMES)
    for _ in range(rng.choice((1, 2))):
        names[rng.randrange(4)] = rng.choice(
            ("", " ", "region", "REGION", "x" * rng.choice((200, 9_000, 140_000)), '"', '"a', "1",
             "a b", "count", "input", "a\0b", "a\x1b[2Jb", "select", '"a\nb"', '"a""b"', "é")
        )  # fmt: skip
    return ",".join(names) + "\n" + rest


def _shape(rng: Random, text: str) -> str:
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    way = rng.randrange(9)
    if way == 0:
        lines[at] += "," + "x" * rng.choice((1, 300))
    elif way == 1:
        lines[at] = lines[at].rpartition(",")[0]
    elif way == 2:
        lines[at] = ""
    elif way == 3:
        lines = lines[:1]
    elif way == 4:
        lines[at] = '"' + lines[at]
    elif way == 5:
        lines[1] = lines[1].replace("Wintersmith", "x" * rng.choice((10_000, 3_000_000)), 1)
    elif way == 6:
        lines[1] = f'"{"y" * rng.choice((10_000, 3_000_000))}",20,n,a'
    elif way == 7 and rng.random() < 0.2:
        wide = rng.choice((150, 600, 3_000))
        more = ",".join(f"w{i}" for i in range(wide))
        lines = [f"{lines[0]},{more}", *(f"{line}{',1' * wide}" for line in lines[1:])]
    else:
        lines = [line.replace(",", rng.choice(";\t|,:")) for line in lines]
    return rng.choice(("\n", "\r\n", "\n", "\r")).join(lines)


def _encoded(rng: Random, text: str) -> bytes:
    return text.encode(rng.choice(("utf-16", "latin-1", "utf-8-sig", "utf-8", "utf-7")))


def _make_csv(rng: Random, place: Place) -> Case:
    text = _csv(rows(rng))
    way = rng.choice(("bytes", "characters", "header", "shape", "encoding"))
    if way == "bytes":
        what, content = damaged(rng, text.encode())
    elif way == "encoding":
        what, content = way, _encoded(rng, text)
    else:
        change = {"characters": _odd_characters, "header": _header, "shape": _shape}[way]
        what, content = way, change(rng, text).encode()
    return Case(what, reading(rng, place.source("table.csv", content)))


def _read_csv(place: Place) -> list[Pair] | None:
    csv.field_size_limit(1 << 30)
    text = (place.vault / "table.csv").read_bytes().decode("utf-8-sig")
    # What RFC 4180 leaves open has no plain reference: a NUL, a lone CR, a quote inside a field.
    first = text.splitlines()[0]
    plain = text.replace("\r\n", "\n")
    if "\0" in text or "\r" in plain or any(one in first for one in ";\t|"):
        return None
    try:
        found = list(csv.DictReader(io.StringIO(plain, newline=""), strict=True))
    except csv.Error:
        return None
    if plain.count('"') != sum(one.count('"') for one in _csv_again(found)):
        return None
    return [(one["region"], one["age"]) for one in found]


def _csv_again(found: list[dict[str, str]]) -> Iterable[str]:
    """Every record written as this file's generator writes it."""
    for one in found:
        yield '"' + (one.get("region") or "").replace('"', '""') + '"'


def _make_json(rng: Random, place: Place) -> Case:
    records = [dict(zip(NAMES, row, strict=True)) for row in rows(rng)]
    lines = [json.dumps(one, ensure_ascii=False) for one in records]
    what = rng.choice(("bytes", "bytes", "value", "line"))
    at = rng.randrange(len(lines))
    if what == "value":
        name = rng.choice(NAMES)
        odd = rng.choice(
            ('"a\\u0000b"', "1e999", "[" * 2_000 + "]" * 2_000, "{}", "NaN", '"\\ud800"', "9" * 400,
             "null", "true", '"\\u001b[31m"', "-0.0", '{"a": [1, {"b": 2}]}')
        )  # fmt: skip
        lines[at] = lines[at].replace(json.dumps(records[at][name], ensure_ascii=False), odd)
    elif what == "line":
        lines[at] = rng.choice(
            ("", "[]", "1", "{", "{}", "null", '{"region": 1}', "\0", lines[0] * 2)
        )
    content = ("\n".join(lines) + "\n").encode()
    if what == "bytes":
        what, content = damaged(rng, content)
    return Case(what, reading(rng, place.source("table.jsonl", content)))


def _number(digits: str) -> float:
    """Beyond the largest number of 64 bits, JSON's numbers are infinite, as in JavaScript."""
    return float(digits) if math.isinf(float(digits)) else int(digits)


def _read_json(place: Place) -> list[Pair] | None:
    text = (place.vault / "table.jsonl").read_text(encoding="utf-8")
    try:
        found = [json.loads(line, parse_int=_number) for line in text.split("\n") if line.strip()]
        return [(one.get("region"), one.get("age")) for one in found]
    except (ValueError, AttributeError, RecursionError):
        return None


CSV = Generator(
    "CSV",
    "flipped and lost bytes, NUL and control characters, quotes, headers, ragged rows, very long"
    " values, 3,000 columns, encodings",
    3.0,
    _make_csv,
    check=same_groups(_read_csv),
    seconds=60.0,
)
JSON = Generator(
    "JSON lines", "flipped and lost bytes, deep nesting, odd values and lines", 1.0, _make_json,
    check=same_groups(_read_json),
)  # fmt: skip
