"""A Stata do-file."""

from __future__ import annotations

import datetime as dt

from reconpriv.release.scripts.base import Answer, Setting, filled
from reconpriv.schema import Value

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_CORRECTED = """\
* Data of one row per group, with @held holders as published: the corrected count.
capture program drop @corrected
program @corrected, rclass
    tempvar share part uneven rounding scaled
    scalar @stray = (1 - @p) / @m
    scalar @keep = @p + @stray
    generate double `share' = @held / @records
    generate double `part' = mod(@records, @trials) / @trials
    generate double `uneven' = `part' * (1 - `part') * @trials^2 / max(@trials - 1, 1) ///
        * `share' * (1 - `share')
    generate double `rounding' = cond(@trials < @records, @weight^2 / 6, 0)
    generate double `scaled' = @weight * @records
    quietly summarize `uneven'
    scalar @uneven = r(sum)
    quietly summarize `rounding'
    scalar @rounding = r(sum)
    quietly summarize `scaled'
    scalar @all = r(sum)
    quietly replace `scaled' = @weight * @held
    quietly summarize `scaled'
    scalar @holders = (r(sum) - @stray * @all) / @p
    scalar @drawn = @holders * (@keep * (1 - @keep) ///
        - @stray * (1 - @stray)) + @all * @stray * (1 - @stray)
    quietly summarize @records
    scalar @all = r(sum)
    quietly summarize @held
    return scalar count = (r(sum) - @stray * @all) / @p
    return scalar se = sqrt((max(@drawn, 0) + @uneven) / @p^2 + @rounding)
end
"""


def stata_script(setting: Setting) -> str:
    """The whole do-file."""
    design = setting.design
    lines = [
        *setting.comments("* "),
        f"* Run it where the data are: do {setting.script}",
        "",
        "version 14",
        f"use {_text(setting.data)}, clear",
        f"scalar {design.prefix}p = {setting.retention!r}",
        f"scalar {design.prefix}m = {setting.domain_size}",
        "",
        filled(_CORRECTED, setting),
    ]
    lines += [_answer(setting, answer) for answer in setting.answers]
    return "\n".join(lines)


def _answer(setting: Setting, answer: Answer) -> str:
    design, condition = setting.design, ""
    if answer.among is not None:
        column, value = answer.among
        condition = f" if {setting.names[column.name]} == {_literal(value)}"
    if answer.holding is None:
        return f"count{condition}\nassert r(N) == {answer.count:.0f}\n"
    held = f"{setting.holder} == {_literal(answer.holding)}"
    tolerance = 1e-6
    return "\n".join(
        [
            "preserve",
            *([f"keep{condition}"] if condition else []),
            f"generate double {design.prefix}held = {held}",
            f"collapse (sum) {design.prefix}held (mean) {design.records} {design.trials}"
            f" {design.weight}, by({design.group})",
            f"{design.prefix}corrected",
            'display "count " %18.4f r(count) ", standard error " %14.4f r(se)',
            f"assert reldif(r(count), {answer.count!r}) < {tolerance}",
            f"assert reldif(r(se), {answer.standard_error!r}) < {tolerance}",
            "restore",
            "",
        ]
    )


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dt.date):
        return f"td({value.day:02}{_MONTHS[value.month - 1]}{value.year})"
    return str(int(value))


def _text(text: str) -> str:
    """A literal that may hold an apostrophe; macros begin with $ or `."""
    return '`"' + text.replace("$", r"\$").replace("`", r"\`") + "\"'"
