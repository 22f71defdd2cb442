"""A SAS program."""

from __future__ import annotations

import datetime as dt

from reconpriv.release.scripts.base import Answer, Setting, filled
from reconpriv.schema import Value

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")

_GROUPS = """\
  create table @groups as
    select @group, sum(HELD) as @held,
      max(@records) as @records, max(@trials) as @trials,
      max(@weight) as @weight
    from work.datasetWHERE group by @group;
"""
_SUMS = """\
  create table @sums as
    select sum(@held) as held, sum(@records) as size,
      sum(@weight * @held) as scaled_held, sum(@weight * @records) as scaled,
      sum(mod(@records, @trials) / @trials * (1 - mod(@records, @trials) / @trials)
        * @trials * @trials / max(@trials - 1, 1)
        * @held / @records * (1 - @held / @records)) as uneven,
      sum(case when @trials < @records then @weight * @weight / 6 else 0 end) as rounding
    from @groups;
  create table @corrected as
    select (held - @stray * size) / @p as answer,
      sqrt((max((scaled_held - @stray * scaled) / @p
        * ((@p + @stray) * (1 - @p - @stray) - @stray * (1 - @stray))
        + scaled * @stray * (1 - @stray), 0) + uneven) / (@p * @p) + rounding) as standard_error
    from @sums, @constants;
"""


def sas_script(setting: Setting) -> str:
    """The whole program."""
    lines = [
        *setting.comments("/* ", " */", "   "),
        "/* Run it where the data are; each answer is shown beside the expected one. */",
        "",
        f"%xpt2loc(libref=work, filespec={_text(setting.data)});",
        "",
        "proc sql;",
        filled(
            "  create table @constants (@p num, @stray num);\n"
            "  insert into @constants values (@retention, RATE);\n",
            setting,
        ).replace("RATE", repr((1.0 - setting.retention) / setting.domain_size)),
        *(_answer(setting, answer) for answer in setting.answers),
        "quit;",
    ]
    return "\n".join(lines) + "\n"


def _answer(setting: Setting, answer: Answer) -> str:
    where = ""
    if answer.among is not None:
        column, value = answer.among
        where = f" where {setting.names[column.name]} = {_literal(value)}"
    if answer.holding is None:
        return (
            f"  select count(*) as answer, {answer.count:.0f} as expected"
            f" from work.dataset{where};\n"
        )
    held = f"{setting.holder} = {_literal(answer.holding)}"
    expected = (
        f"  select answer, {answer.count!r} as expected, standard_error,\n"
        f"    {answer.standard_error!r} as expected_error from @corrected;\n"
        "  drop table @groups, @sums, @corrected;\n"
    )
    groups = filled(_GROUPS, setting).replace("HELD", held).replace("WHERE", where)
    return groups + filled(_SUMS + expected, setting)


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dt.date):
        return f"'{value.day:02}{_MONTHS[value.month - 1]}{value.year}'d"
    return str(int(value))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
