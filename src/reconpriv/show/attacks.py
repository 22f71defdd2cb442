"""What an attack showed, on a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.show import markup, palette
from reconpriv.show.markup import tag
from reconpriv.show.notebook import LEFT, RIGHT, box, closed, headline, html_table, whisker
from reconpriv.show.text import figure, pairs_table, rows_table

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult


def attack_view(result: AttackResult) -> RenderableType:
    """An attack: verdict first, then its rates, figures, table and worst groups."""
    parts: list[RenderableType] = [Text(f"{result.verdict}\n", style="bold")]
    return Group(*parts, *attack_tables(result))


def attack_tables(result: AttackResult) -> list[RichTable]:
    """An attack's rates and figures, its table and its worst groups."""
    rows = [("attack", result.name), ("adversary knew", result.knew)]
    for name in ("success", "baseline", "control"):
        rate = getattr(result, name)
        if rate is not None:
            rows.append((name, f"{rate}: {rate.what}"))
    rows += [(name, figure(value)) for name, value in result.figures.items()]
    tables = [pairs_table(rows)]
    if result.table:
        tables.append(rows_table("\nFigures", result.table))
    if result.worst:
        tables.append(rows_table("\nWorst groups (internal: not for release)", result.worst))
    return tables


def attack_html(result: AttackResult) -> str:
    """The verdict, the rates side by side on one scale, and the figures."""
    rates = []
    for name in ("success", "baseline", "control"):
        rate = getattr(result, name)
        if rate is not None and rate.trials:
            colour = palette.VERMILION if name == "success" else palette.BLUE
            picture = whisker(rate.low, rate.share, rate.high, 1.0, colour)
            rates.append([tag("b", name), f"{rate.share:.1%}", picture, rate.what])
    facts, *more = attack_tables(result)
    return box(
        headline(result.verdict),
        markup.table((), rates, [LEFT, RIGHT, LEFT, LEFT]) if rates else None,
        html_table(facts),
        [closed(str(table.title or "").strip(), html_table(table)) for table in more],
    )
