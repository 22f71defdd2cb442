"""The tables and the figure of docs/recommended.md, from docs/recommended.csv and its coverage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reconpriv.research.results import Row, read_result
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import LegendEntry
from reconpriv.show.charts.palette import Look

DOCS = Path(__file__).resolve().parents[1] / "docs"
CSV, COVERAGE = DOCS / "recommended.csv", DOCS / "recommended-coverage.csv"
PAGE, FIGURE = DOCS / "recommended.md", DOCS / "figures" / "recommended.svg"
CHOICE = DOCS / "how-to" / "choose-a-policy.md"

NAMES = {
    "plain": "perturbation alone",
    "paper": "the paper's policy",
    "signed": "recommended, no margins",
    "recommended": "recommended",
}
LOOKS = {
    "plain": palette.PLAIN,
    "paper": palette.SECOND,
    "signed": palette.THIRD,
    "recommended": Look(palette.BLUE, "square"),
}
# What the presets cost, on the tables that come with reconpriv.
PRESETS = {
    "recommended": "`recommended`",
    "paper": "`paper`",
    "strict": "`strict`",
    "plain": "perturbation alone",
}
BUNDLED = {"Adult": "Adult", "Education": "census, education", "Occupation": "census, occupation"}
# The promise is checked with these, too.
OTHERS = {"public": "sampling rule `public`", "pairs": "margins by pairs of columns, too"}
# An interval of a smaller count has few ends to choose from, and holds more often.
COUNTS_TO_JUDGE = 30

_PLACE = re.compile(r"(<!-- from recommended.csv -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(text: str, rows: tuple[Row, ...], covered: tuple[Row, ...]) -> str:
    """The page with the tables of these rows, in the order of its places."""
    tables = (_comparison(rows), _reasons(rows), _promise(rows), _others(rows), _coverage(covered))
    parts = iter(["\n".join(one) for one in tables])
    return _PLACE.sub(lambda place: f"{place[1]}\n{next(parts)}\n\n{place[2]}", text)


def renewed_choice(text: str, rows: tuple[Row, ...]) -> str:
    """The page on how to choose a policy, with what the presets cost."""
    table = "\n".join(_presets(rows))
    return _PLACE.sub(lambda place: f"{place[1]}\n{table}\n\n{place[2]}", text)


def write_page() -> None:
    """The tables of both pages, and the figure."""
    rows, covered = read_result(CSV).rows, read_result(COVERAGE).rows
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), rows, covered), encoding="utf-8")
    choice = renewed_choice(CHOICE.read_text(encoding="utf-8"), rows)
    CHOICE.write_text(choice, encoding="utf-8")
    draw(rows, FIGURE)


def _table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    names = list(head)
    rule = "|---|" + "---:|" * (len(names) - 1)
    return [f"| {' | '.join(names)} |", rule, *(f"| {' | '.join(one)} |" for one in lines)]


def _by_table(rows: tuple[Row, ...]) -> dict[str, dict[str, Row]]:
    """The rows of each table, by policy."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["table"], {})[row["policy"]] = row
    return found


def _percent(share: Any) -> str:
    return "–" if share == "" else f"{100 * share:.0f} %"


def _comparison(rows: tuple[Row, ...]) -> list[str]:
    """Error and adversary's success of every table, a column for each policy."""
    counts = ("records", "groups", "public_columns", "values", "attacked_groups")
    lines = []
    for table, own in _by_table(rows).items():
        first = next(iter(own.values()))
        last = own.get("recommended", {"model_right": "", "model_right_held_out": ""})
        model = f"{_percent(last['model_right'])}, {_percent(last['model_right_held_out'])}"
        cells = (_pair(own.get(policy)) for policy in NAMES)
        lines.append([table, *(f"{first[one]:,}" for one in counts), *cells, model])
    names = (one.replace("_", " ") for one in counts)
    return _table(["table", *names, *NAMES.values(), "a model: in the table, held out"], lines)


def _pair(row: Row | None) -> str:
    return "–" if row is None else f"{row['error']:.3f}, {_percent(row['right'])}"


def _presets(rows: tuple[Row, ...]) -> list[str]:
    """What the presets cost, and what they leave to an adversary: a line for each."""
    found = _by_table(rows)
    lines = []
    for policy, name in PRESETS.items():
        own = [found[table][policy] for table in BUNDLED]
        pairs = (f"{_percent(row['error'])} off, {_percent(row['right'])} told" for row in own)
        lines.append([name, *(pair.replace(" %", "\N{NO-BREAK SPACE}%") for pair in pairs)])
    return _table(["preset", *BUNDLED.values()], lines)


def _reasons(rows: tuple[Row, ...]) -> list[str]:
    """The error as a multiple of that of perturbation, by what is asked and with other margins."""
    lines = []
    for table, own in _by_table(rows).items():
        plain, last = own["plain"], own.get("recommended")
        if last is None:
            continue
        names = ("error", "error_1", "error_2", "error_3")
        errors = [_times(last, plain, name) for name in names]
        large = 100 * last["attacked_records"] / last["records"]
        left_out = f"{last['rows_left_out']:.0f} of {last['rows'] + last['rows_left_out']:.0f}"
        free, pairs = (_times(own.get(one), plain) for one in ("plain with margins", "pairs"))
        lines.append([table, *errors, free, pairs, f"{large:.0f} %", left_out])
    return _table(
        ["table", "all questions", "one column", "two", "three", "margins without a promise",
         "margins by pairs, too", "records in attacked groups", "margin rows left out"],
        lines,
    )  # fmt: skip


def _times(row: Row | None, plain: Row, name: str = "error") -> str:
    return "–" if row is None else f"{row[name] / plain[name]:.2f}"


def _promise(rows: tuple[Row, ...]) -> list[str]:
    """Whether the promise of the recommended policy holds."""
    lines = [
        [
            row["table"], f"{row['exposed']:,}", f"{row['smallest_predicted']:.3f}",
            f"{row['over_limit']:.1f} of {row['violating_groups']:,}",
            f"{row['undercounted']:.1f}, {100 * max(row['largest_of_counted'] - 1, 0):.0f} %",
            f"{row['tail_keys']:,}",
            f"{row['below_own']}, {row['below_both']}",
            f"{row['smallest_own']:.3f}, {row['smallest_both']:.3f}",
            f"{row['worst_class']}: {row['worst_seen']:,.0f} for {row['worst_predicted']:,.0f}"
            f" ({row['worst_score']:+.1f})",
        ]
        for row in rows if row["policy"] == "recommended"
    ]  # fmt: skip
    return _table(
        ["table", "exposed values", "smallest tail predicted", "groups above their limit",
         "E too low: values, by at most", "keys",
         "too rarely wrong: own records, with margins",
         "smallest tail seen: own records, with margins", "worst class: seen for predicted"],
        lines,
    )  # fmt: skip


def _others(rows: tuple[Row, ...]) -> list[str]:
    """The same for other policies, the worst of all tables."""
    lines = []
    for policy, name in OTHERS.items():
        own = [row for row in rows if row["policy"] == policy]
        if own:
            worst = max(own, key=lambda row: abs(row["worst_score"]))
            lines.append([
                name, f"{len(own)}", f"{sum(row['exposed'] for row in own):,}",
                f"{min(row['smallest_predicted'] for row in own):.3f}",
                f"{sum(row['over_limit'] for row in own):.1f} of"
                f" {sum(row['violating_groups'] for row in own):,}",
                f"{worst['worst_score']:+.1f} ({worst['table']})",
            ])  # fmt: skip
    return _table(
        ["policy", "tables", "exposed values", "smallest tail predicted",
         "groups above their limit", "worst class"],
        lines,
    )  # fmt: skip


def _coverage(covered: tuple[Row, ...]) -> list[str]:
    """How often intervals hold, by class of the true count."""
    tables = list(dict.fromkeys(row["table"] for row in covered))
    found = {(row["table"], row["from_count"]): row for row in covered}
    starts = sorted({row["from_count"] for row in covered})
    lines = []
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        cells = (found.get((table, start)) for table in tables)
        lines.append([_span(start, end), *("–" if one is None else _covered(one) for one in cells)])
    worst = max(
        (row for row in covered if row["from_count"] >= COUNTS_TO_JUDGE),
        key=lambda row: abs(row["covered"] - 0.95),
    )
    end = next((one for one in starts if one > worst["from_count"]), None)
    sentence = (
        f"The worst class from {COUNTS_TO_JUDGE} on is {worst['table']}, true counts of"
        f" {_span(worst['from_count'], end)}: {_covered(worst)} of"
        f" {worst['intervals']:,} intervals."
    )
    return [*_table(["true count", *tables], lines), "", sentence]


def _span(start: int, end: int | None) -> str:
    if end is None:
        return f"{start:,} and more"
    return f"{start:,}" if end == start + 1 else f"{start:,} to {end - 1:,}"


def _covered(row: Row) -> str:
    return f"{100 * row['covered']:.1f} % (± {100 * row['standard_error']:.1f})"


def draw(rows: tuple[Row, ...], *targets: Path) -> None:
    """A line for each table: the analysts' error at the left, what an adversary gets right."""
    alt = charts.altair("experiments")
    shown = [row | {"series": row["policy"]} for row in rows if row["policy"] in LOOKS]
    errors = [row["error"] for row in shown]
    gain = {table: own["recommended"]["error"] / own["plain"]["error"]
            for table, own in _by_table(rows).items() if "recommended" in own}  # fmt: skip
    order = sorted(gain, key=lambda table: gain[table])

    def part(x: Any, values: list[Row], *, names: bool) -> Any:
        axis = alt.Axis(labels=names, ticks=False, domain=False, grid=True, tickBand="extent",
                        minExtent=80 if names else 0)  # fmt: skip
        lines = alt.Y("table:N", sort=order, title=None, axis=axis)
        beside = alt.YOffset("series:N", sort=list(LOOKS))
        base = alt.Chart(charts.rows(values)).encode(x=x, y=lines, yOffset=beside)
        return charts.panel(charts.points(base, LOOKS, size=55), 270, 30 * len(order))

    span = alt.Scale(type="log", domain=[min(errors) * 0.85, max(errors) * 1.2], nice=False)
    error = alt.X("error:Q", title="mean error of counts (left is better)", scale=span,
                  axis=charts.percent_axis(values=[0.02, 0.05, 0.1, 0.2, 0.5]))  # fmt: skip
    right = alt.X("right:Q", title="attacked groups told within ±50 % (left is better)",
                  scale=alt.Scale(domain=[0.5, 1.0]), axis=charts.percent_axis())  # fmt: skip
    told = [row for row in shown if row["right"] != ""]
    panels = [part(error, shown, names=True), part(right, told, names=False)]
    entries = [LegendEntry(NAMES[one], look, "mark") for one, look in LOOKS.items()]
    charts.save(charts.figure(panels, entries=entries, width=620), *targets)
