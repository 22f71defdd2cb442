"""What would make a better release: a sentence each, with what it would gain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Kind
from reconpriv.messages.numbers import label
from reconpriv.messages.remedies import Advice, Control, Remedy
from reconpriv.theory.perturbation import PRIOR, posterior_limit
from reconpriv.tuning.columns import expected_error

_DOMINANT = 0.6  # a value that more than this share of the records hold may be no secret
_LARGE_DOMAIN = 100
_GROUPED_DOMAIN = 20
MANY_VALUES = 50  # numbers with more values than this are better binned
NUMBER_TEXT = re.compile(
    r"[-+]?[$€£]? ?\d{1,3}([,.' ]\d{3})+([.,]\d+)?|[-+]?[$€£]? ?\d+([.,]\d+)?%?"
)


def hints_of(report: AuditReport, cube: Cube) -> tuple[str, ...]:
    """What the audit advises about the sensitive column and about public ones."""
    return (*_dominant(report, cube), *_large_domain(report), *_numbers_as_text(report, cube))


def _dominant(report: AuditReport, cube: Cube) -> Iterator[str]:
    """A value that most people hold, if calling it harmless would make counts more accurate."""
    policy, domain = report.policy, cube.schema.domain
    held = np.bincount(cube.value, weights=cube.count, minlength=len(domain))
    share, value = held.max() / held.sum(), domain[int(held.argmax())]
    if share <= _DOMINANT or len(domain) < 2 or policy.harmless or report.errors is None:
        return
    if report.protection or not policy.can_sample:
        return
    plain = replace(policy, margins=None, harmless=(value,)).on(cube.schema)
    error = expected_error(cube, plain.publishable())
    if error is None or error > 0.95 * report.errors.alone:
        return
    yield Advice(
        f"{share:.0%} of the records hold {label(value)!r}. If that is no secret, calling it"
        f" harmless lowers the expected error from {report.errors.alone:.1%} to"
        f" {error:.1%}{report.margins.aside}.",
        Remedy("do so", Control.HARMLESS, ("NULL" if value is None else str(value),)),
    )


def _large_domain(report: AuditReport) -> Iterator[str]:
    """A sensitive column of hundreds of values, which hide a single value badly."""
    m, p = report.domain_size, report.policy.retention
    if m <= _LARGE_DOMAIN:
        return
    now, then = posterior_limit(p, m, PRIOR), posterior_limit(p, _GROUPED_DOMAIN, PRIOR)
    yield Advice(
        f"{report.sensitive!r} has {m:,} values. A published value that was thought {PRIOR:.0%}"
        f" likely is then believed with up to {now:.0%}; with {_GROUPED_DOMAIN} groups of values"
        f" it would be {then:.0%}.",
        (Remedy("group the values", Control.GROUP), Remedy("bin numbers", Control.BIN)),
    )


def _numbers_as_text(report: AuditReport, cube: Cube) -> Iterator[str]:
    """Public texts that are really numbers, and so have as many values as records."""
    now = report.single_records.unique
    without = {column.name: column.without for column in report.columns}
    for column, values in zip(cube.schema.public, cube.values, strict=True):
        if column.kind is not Kind.STRING or len(values) <= MANY_VALUES:
            continue
        texts = [text for text in values.to_pylist() if text is not None]
        if cube.schema.recoding(column.name) or not all(map(NUMBER_TEXT.fullmatch, texts)):
            continue
        then = without.get(column.name)
        gain = ""
        if then is not None and then.unique < now:
            gain = f" Without it, {then.unique:,} instead of {now:,} records would be unique."
        yield Advice(
            f"Public column {column.name!r} holds numbers written as text (such as {texts[0]!r}),"
            f" {len(texts):,} different ones.{gain}",
            Remedy("turn it into numbers and bin it", Control.SQL),
        )
