"""Text on a terminal: names and values appear as they are."""

from __future__ import annotations

import pandas as pd
import pytest
from rich.table import Table as RichTable

import reconpriv as rp
from reconpriv.show.audit import audit_view
from reconpriv.show.text import as_text, pairs_table, print_safely

MARKUP = ("[/x]", "[red]", "[bold]b[/bold]", ":bug:", "[link=x]", r"\[x]")


@pytest.mark.parametrize("name", MARKUP)
def test_markup_in_a_text_is_shown_and_not_obeyed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = RichTable(name, title=name)
    table.add_row(name)
    for shown in (table, pairs_table([(name, name)]), name):
        print_safely(shown)
        printed = capsys.readouterr().out
        assert as_text(shown).count(name) == printed.count(name) >= 1


@pytest.mark.parametrize("name", MARKUP)
def test_an_audit_shows_such_names(name: str) -> None:
    frame = pd.DataFrame({name: [name] * 300, "s": [name, "b", "c"] * 100})
    shown = as_text(
        audit_view(rp.read(frame, sensitive="s", public="all").audit(rp.Policy(0.5, 0.5, 0.3)))
    )
    assert f"public: {name}" in shown
    assert f"({name})" in shown  # the most frequent value of the worst group
