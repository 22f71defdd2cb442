"""SPSS syntax."""

from __future__ import annotations

import datetime as dt

from reconpriv.release.scripts.base import Answer, Setting, filled
from reconpriv.schema import Value

_CORRECTED = """\
AGGREGATE OUTFILE=* /BREAK=@group /@held=SUM(@held)
  /@size=MEAN(@records) /@n=MEAN(@trials) /@scale=MEAN(@weight).
COMPUTE @share = @held / @size.
COMPUTE @part = MOD(@size, @n) / @n.
COMPUTE @uneven = @part * (1 - @part) * @n**2 / MAX(@n - 1, 1) * @share * (1 - @share).
COMPUTE @rounding = 0.
IF (@n < @size) @rounding = @scale**2 / 6.
COMPUTE @scaled = @scale * @size.
COMPUTE @scaledheld = @scale * @held.
COMPUTE @one = 1.
AGGREGATE OUTFILE=* /BREAK=@one /@held=SUM(@held) /@size=SUM(@size) /@uneven=SUM(@uneven)
  /@rounding=SUM(@rounding) /@scaled=SUM(@scaled) /@scaledheld=SUM(@scaledheld).
COMPUTE @p = @retention.
COMPUTE @stray = (1 - @p) / @domain.
COMPUTE @keep = @p + @stray.
COMPUTE @holders = (@scaledheld - @stray * @scaled) / @p.
COMPUTE @drawn = @holders * (@keep * (1 - @keep) - @stray * (1 - @stray))
  + @scaled * @stray * (1 - @stray).
COMPUTE @count = (@held - @stray * @size) / @p.
COMPUTE @se = SQRT((MAX(@drawn, 0) + @uneven) / @p**2 + @rounding).
"""
_SHOWN = """\
FORMATS @count @expected @se @expected_se (F18.4).
LIST @count @expected @se @expected_se.
"""
_PUBLIC = """\
COMPUTE @one = 1.
AGGREGATE OUTFILE=* /BREAK=@one /@count=N.
"""
_PUBLIC_SHOWN = """\
FORMATS @count @expected (F18.0).
LIST @count @expected.
"""


def spss_script(setting: Setting) -> str:
    """The whole syntax file."""
    lines = [
        *setting.comments("* ", more="  "),
        "* Run it where the data are; each answer is listed beside the expected one.",
        "",
    ]
    return "\n".join([*lines, *(_answer(setting, answer) for answer in setting.answers)])


def _answer(setting: Setting, answer: Answer) -> str:
    lines = [f"GET FILE={_text(setting.data)}."]
    if answer.among is not None:
        column, value = answer.among
        lines.append(f"SELECT IF ({setting.names[column.name]} = {_literal(value)}).")
    start = "\n".join([*lines, ""])
    if answer.holding is None:
        expected = f"COMPUTE @expected = {answer.count:.0f}.\n"
        return start + filled(_PUBLIC + expected + _PUBLIC_SHOWN, setting)
    held = f"IF ({setting.holder} = {_literal(answer.holding)}) "
    expected = (
        f"COMPUTE @expected = {answer.count!r}.\n"
        f"COMPUTE @expected_se = {answer.standard_error!r}.\n"
    )
    mark = filled("COMPUTE @held = 0.\n", setting) + held + filled("@held = 1.\n", setting)
    return start + mark + filled(_CORRECTED + expected + _SHOWN, setting)


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dt.date):
        return f"DATE.DMY({value.day}, {value.month}, {value.year})"
    return str(int(value))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
