"""How each kind of result is shown: the function that makes its document."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from reconpriv.messages.remedies import Words, python_words
from reconpriv.show.document import Document

if TYPE_CHECKING:
    from reconpriv.show.charts.chart import Chart

# By class name, and imported one by one: importing all would take longer than showing one.
_DOCUMENTS = {
    "AttackResult": "lessons.attack_document",
    "AuditReport": "audit.audit_document",
    "Comparison": "answers.comparison_document",
    "Crosstab": "answers.crosstab_document",
    "Estimate": "answers.answer_document",
    "EstimateTable": "answers.table_document",
    "Examination": "tables.doctor_document",
    "Figure": "answers.answer_document",
    "FigureTable": "answers.table_document",
    "Frequencies": "tables.frequencies_document",
    "IndependenceTest": "lessons.independence_document",
    "Learned": "lessons.learned_document",
    "Ledger": "tables.ledger_document",
    "PramMatrix": "tables.matrix_document",
    "Proposals": "tables.proposals_document",
    "Regression": "lessons.regression_document",
    "Release": "release.release_document",
    "ReviewRecord": "record.record_document",
    "Study": "tables.study_document",
    "TuneReport": "tuning.tune_document",
    "TwoWay": "answers.two_way_document",
}
_WITH_REMEDIES = ("AuditReport", "TuneReport")


def document_of(result: object, words: Words = python_words) -> Document:
    """The document of a result, with its remedies in the words of a surface."""
    kind = type(result).__name__
    module, _, name = _DOCUMENTS[kind].partition(".")
    make = getattr(import_module(f"reconpriv.show.results.{module}"), name)
    return cast(Document, make(result, words) if kind in _WITH_REMEDIES else make(result))


def text_of(result: object) -> str:
    """A result as plain text."""
    from reconpriv.show.text import as_text  # noqa: PLC0415 - needs rich, and a page does not

    return as_text(document_of(result))


def html_of(result: object) -> str:
    """A result as HTML for a notebook."""
    from reconpriv.show.html import notebook_html  # noqa: PLC0415 - text needs none of it

    return notebook_html(document_of(result))


def chart_of(result: object, *, most: int, order: str) -> Chart:
    """A result as a chart."""
    from reconpriv.show.charts.chart import Chart  # noqa: PLC0415 - text needs none of it

    return Chart.of(result, most=most, order=order)
