"""CSV files: broken quotes, odd bytes, odd headers, flipped bits."""

from __future__ import annotations

from random import Random

from campaign.case import Case, Generator
from campaign.generators.bytes import mangled
from campaign.generators.tables import NAMES, reading, rows
from campaign.place import Place


def _make(rng: Random, place: Place) -> Case:
    lines = [",".join(NAMES)]
    for region, age, note, income in rows(rng):
        quoted = region.replace('"', '""')
        lines.append(f'"{quoted}",{age},{note},{income}')
    what, content = mangled(rng, "\n".join(lines).encode() + b"\n")
    return Case(what, reading(rng, place.source("table.csv", content)))


CSV = Generator("CSV", "flipped, cut, doubled and odd bytes", 1.0, _make)
