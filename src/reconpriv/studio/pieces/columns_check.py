"""What the columns do, before any policy: who stands out, and what coarser columns would do."""

from __future__ import annotations

from collections.abc import Callable

from htmltools import Tag, TagList, tags
from shiny import reactive

import reconpriv as rp
from reconpriv.auditing.single_records import K
from reconpriv.reports.changes import advice, changes_grid
from reconpriv.reports.columns import ColumnsFound, Step, count_columns
from reconpriv.show.document import Card
from reconpriv.studio.pieces.parts import button, card, document, grid, notice, result
from reconpriv.studio.pieces.verdict import figures
from reconpriv.studio.work.background import Computation
from reconpriv.studio.work.live import Live
from reconpriv.studio.work.plan import DeclaredRoles, read_table
from reconpriv.studio.work.workspace import Opened

# Larger tables are counted on request: it takes a while.
_QUICK_RECORDS = 200_000


def counted(opened: Opened, roles: DeclaredRoles, step: Step) -> ColumnsFound:
    """The columns of a table by these roles; opens the table separately."""
    with read_table(opened.source, roles) as table:
        return count_columns(table, step)


def serve_columns_check(live: Live, chosen: Callable[[], DeclaredRoles]) -> None:
    """Count a table of usual size as soon as its roles are chosen; a larger one on request."""
    counts: Computation[tuple[Opened, DeclaredRoles], ColumnsFound] = Computation(
        live.workspace.report_pool, lambda key: counted(*key, counts.step)
    )

    @reactive.calc
    def key() -> tuple[Opened, DeclaredRoles] | None:
        """The open table by the roles that the form has, if they make sense."""
        opened = live.opened()
        try:
            return None if opened is None else (opened, chosen())
        except rp.ReconprivError:
            return None

    @reactive.effect
    def _() -> None:
        opened = live.opened()
        if live.step() == 2 and opened is not None and opened.summary.records <= _QUICK_RECORDS:
            counts.request(key())

    def columns_check() -> Tag | None:
        now, latest = key(), counts.latest()
        if now is None and latest is None:
            return None
        if now is not None and (fault := counts.fault(now)):
            return card("What these columns do", notice(fault, "warning"))
        if latest is not None and now is not None and latest.key[0] is now[0]:
            current = latest.key == now
            if current or counts.busy():
                return result(columns_card(latest.found), current=current)
        if counts.busy():
            return tags.p("Counting the columns…", class_="working")
        return button("count_columns", "Count what these columns do") if now else None

    live.on("count_columns", lambda: counts.request(key()))
    live.show("columns_check", columns_check)


def columns_card(found: ColumnsFound) -> Tag:
    """Who stands out, what would change that, and what bins and groups hold."""
    now, of = found.now, f"of {found.records:,} records"
    said = [tags.p(text) for text in advice(found.changes, now)] if found.changes else []
    left = f"The {found.left_out} columns with the fewest values were not compared."
    return card(
        "What these columns do",
        figures(
            Card(f"groups of people who agree on all public columns, {of}", f"{now.groups:,}"),
            Card("are unique: nobody else has the same public values", f"{now.unique:,}"),
            Card(f"are in groups of fewer than {K}", f"{now.below_k:,}"),
            Card("are in groups that could be reconstructed if records were only randomised",
                 f"{now.violating_records:,}"),
        ),
        tags.div(*said, class_="said"),
        tags.p(left, class_="help") if found.left_out else None,
        tags.details(
            tags.summary("What coarser columns would do"),
            document(changes_grid(found.changes, now, K)),
        )
        if found.changes
        else None,
        *(_recoded(name, labels) for name, labels in found.recoded.items()),
    )  # fmt: skip


def _recoded(name: str, labels: list[tuple[str, int]]) -> TagList:
    rows = [(one, f"{records:,}") for one, records in labels]
    return TagList(
        tags.details(
            tags.summary(f"{name}: {len(rows)} values after recoding"),
            grid(("Value", "Records"), rows, label=f"Values of {name}", numbers=1),
        )
    )
