"""Text on a terminal: names and values appear as they are."""

import pandas as pd
import pytest

import reconpriv as rp
from reconpriv.show.document import Facts, Field, Grid, Paragraph
from reconpriv.show.results.audit import audit_document
from reconpriv.show.text import as_text, print_safely

MARKUP = ("[/x]", "[red]", "[bold]b[/bold]", ":bug:", "[link=x]", r"\[x]")


@pytest.mark.parametrize("name", MARKUP)
def test_markup_in_a_text_is_shown_and_not_obeyed(name, capsys):
    for part in (Grid([Field(name)], [(name,)], name), Facts([(name, name)]), Paragraph(name)):
        print_safely([part])
        printed = capsys.readouterr().out
        assert as_text([part]).count(name) == printed.count(name) >= 1


@pytest.mark.parametrize("name", MARKUP)
def test_an_audit_shows_such_names(name):
    frame = pd.DataFrame({name: [name] * 300, "s": [name, "b", "c"] * 100})
    report = rp.read(frame, sensitive="s", public="all").audit(
        rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    )
    shown = as_text(audit_document(report))
    assert f"public: {name}" in shown
    assert f"({name})" in shown  # the most frequent value of the worst group


@pytest.mark.parametrize("width", range(24, 60))
def test_a_number_and_its_unit_stay_on_one_line(width, monkeypatch, capsys):
    words = "in 72 to 100 % of the groups instead of 62 to 72 %, or 5 % of 1 %"
    parts = [Paragraph(words), Facts([("a name", words)]), Grid([Field("x")], [(words,)], words)]
    monkeypatch.setenv("COLUMNS", str(width))
    print_safely(parts)
    for text in (as_text(parts, width), capsys.readouterr().out):
        assert not [line for line in text.splitlines() if line.strip().startswith("%")]
        assert max(map(len, text.splitlines())) <= width
        assert " ".join(text.split()).count("72 %, or 5 % of 1 %") == 4
    torn = Paragraph("in 72 to 100 pc of it")
    assert any(line.startswith("pc") for line in as_text([torn], 12).splitlines())
