"""The script that goes with an export: in the language of the program that reads the file.

Each corrects a count and compares three answers with those of the release. A program is a record
of its templates, the longer ones of which are files in ``templates``. In them, @word is a name that
begins like the columns of the design, and «word» a part that depends on the release or the answer.
"""

from __future__ import annotations

import datetime as dt
import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from reconpriv.columns.schema import Column, Kind, Value, value_text
from reconpriv.release.export import Script, program_of, script_path
from reconpriv.release.export_design import CheckAnswer, DesignedRecords
from reconpriv.release.export_names import file_names
from reconpriv.release.manifest import Manifest
from reconpriv.theory.perturbation import replacement_probability

_WIDTH = 90
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ABOUT = (
    "Counts from «data words», a randomised release made by reconpriv.",
    "Public columns are exact, but «holder words» is randomised: a value was kept with probability"
    " p, else replaced by any of the m values, so a published count must be corrected: estimate ="
    " (n - N (1-p) / m) / p for n of N records.",
    "The @records records of a group rest on @trials independent trials, each of which stands for"
    " @weight records; programs that take rows as independent give standard errors that are too"
    " small, but those below are right.",
    "For intervals that also hold for small counts, ask reconpriv query.",
)
_POOLED = (
    "Groups are pooled over «pooled words»: choose records by other columns only, or estimates and"
    " standard errors are wrong."
)
_MARGINS = (
    "The release also has margins, which this file has not; with them reconpriv answers more"
    " precisely, and with the estimator 'records' it answers as below."
)
_LAST = "At the end, three answers are compared with those of the release."


@dataclass(frozen=True)
class Program:
    """How scripts of a program are written.

    ``comment`` is what begins and ends a comment, and begins its further lines. ``where`` chooses
    records by a «column», ``kept`` is that as a statement. ``public`` and ``holders`` are answers
    about all chosen records, and about those of a sensitive «value».
    """

    comment: tuple[str, str, str]
    head: str
    where: str
    public: str
    holders: str
    text: Callable[[str], str]
    everywhere: str = ""
    kept: str = ""
    tail: str = ""
    date: str = ""

    def literal(self, column: Column, value: Value, *, parquet: bool) -> str:
        """A value of a column; R compares texts."""
        if not self.date:
            text = value_text(column.kind, value)
            if column.kind is Kind.BOOLEAN:
                text = text.upper() if parquet else text.lower()
            return self.text(text)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dt.date):
            month = _MONTHS[value.month - 1]
            return self.date.format(value, month=month, MONTH=month.upper())
        return str(int(value))


def _ascii(text: str) -> str:
    """A literal in ASCII, which R reads the same in every locale."""
    letters = []
    for letter in text:
        code = ord(letter)
        if letter in "\\'":
            letters.append(f"\\{letter}")
        elif code < 32 or code == 127:
            letters.append(f"\\x{code:02x}")
        else:
            letters.append(letter if code < 127 else f"\\U{{{code:x}}}")
    return f"'{''.join(letters)}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _compound(text: str) -> str:
    """A literal that may hold an apostrophe; Stata's macros begin with $ or `."""
    return '`"' + text.replace("$", r"\$").replace("`", r"\`") + "\"'"


def _template(name: str) -> str:
    return files("reconpriv.release").joinpath("templates", name).read_text(encoding="utf-8")


PROGRAMS = {
    "R": Program(
        ("# ", "", "# "),
        _template("head.R"),
        "data[data[[«column»]] %in% «at», ]",
        "compared(«what», nrow(«where»), «whole»)",
        "compared(«what»,\n  corrected(«where», «value»),\n  c(«count», «error»))",
        _ascii,
        everywhere="data",
    ),
    "SAS": Program(
        ("/* ", " */", "   "),
        _template("head.sas"),
        " where «column» = «at»",
        "  select count(*) as answer, «whole» as expected from work.dataset«where»;\n",
        _template("holders.sas"),
        _quoted,
        tail="quit;\n",
        date="'{0.day}{MONTH}{0.year}'d",
    ),
    "SPSS": Program(
        ("* ", "", "  "),
        "* Run it where the data are; each answer is listed beside the expected one.\n",
        "«column» = «at»",
        _template("public.sps"),
        _template("holders.sps"),
        _quoted,
        kept="SELECT IF («where»).\n",
        date="DATE.DMY({0.day}, {0.month}, {0.year})",
    ),
    "Stata": Program(
        ("* ", "", "* "),
        _template("head.do"),
        " if «column» == «at»",
        "count«where»\nassert r(N) == «whole»\n",
        _template("holders.do"),
        _compound,
        kept="keep«where»\n",
        date="td({0.day:02}{month}{0.year})",
    ),
}


def export_script(
    path: Path, records: DesignedRecords, manifest: Manifest, answers: tuple[CheckAnswer, ...]
) -> Script:
    """A script that counts in the file as the release does."""
    name, script = program_of(path), script_path(path)
    program, schema = PROGRAMS[name], manifest.schema
    columns, sensitive = records.table.column_names, schema.sensitive
    own = name == "R"  # R takes any name, in quotes
    names = {one: one for one in columns} if own else file_names(columns, name)
    parquet, p, m = path.suffix.lower() == ".parquet", manifest.policy.retention, schema.domain_size
    known = {"@retention": repr(p), "@domain": str(m)}
    prefix = records.names[0].removesuffix("group")

    def filled(text: str, parts: Mapping[str, str]) -> str:
        text = re.sub(r"@\w+", lambda found: known.get(found[0], prefix + found[0][1:]), text)
        return re.sub(r"«([^»]*)»", lambda found: parts[found[1]], text)

    titles = {one: said.title for one, said in records.labels.items() if said.title}
    parts = {
        "data words": _plain(path.name),
        "holder words": _plain(names[sensitive.name]),
        "pooled words": _plain(", ".join(manifest.pooled)),
        "script": script.name,
        "file": program.text(path.name),
        "sensitive": program.text(sensitive.name),
        "rate": repr(replacement_probability(p, m)),
        "design": ", ".join(map(program.text, records.names)),
        "read": _R_READ[parquet].format(program.text(path.name)),
        "labels": "".join(
            f"attr(data[[{program.text(one)}]], 'label') <- {program.text(label)}\n"
            for one, label in titles.items()
        ),
    }

    def answer(one: CheckAnswer) -> str:
        where, what, kept = program.everywhere, "all records", ""
        if one.among is not None:
            column, value = one.among
            place = program.text(column.name) if own else names[column.name]
            at = {"column": place, "at": program.literal(column, value, parquet=parquet)}
            where = filled(program.where, at)
            what = f"{column.name} = {value_text(column.kind, value)}"
            kept = filled(program.kept, {"where": where})
        about = parts | {
            "where": where, "kept": kept, "holder": names[sensitive.name],
            # Ten digits: the last ones of a float differ between processors.
            "whole": f"{one.count:.0f}", "count": repr(float(f"{one.count:.10g}")),
            "error": repr(float(f"{one.standard_error:.10g}")),
        }  # fmt: skip
        if one.holding is None:
            return filled(program.public, about | {"what": program.text(what)})
        held = f"{sensitive.name} = {value_text(sensitive.kind, one.holding)}"
        about["what"] = program.text(f"{held}, {what}")
        about["value"] = program.literal(sensitive, one.holding, parquet=parquet)
        return filled(program.holders, about)

    beside = ((_POOLED, manifest.pooled), (_MARGINS, manifest.margins.tables))
    about = [*_ABOUT, *(text for text, there in beside if there), _LAST]
    comments = [line for one in about for line in _comment(filled(one, parts), *program.comment)]
    lines = [*comments, filled(program.head, parts), *map(answer, answers)]
    ends = [program.tail] if name in ("R", "SAS") else []
    return Script(script, "\n".join([*lines, *ends]))


_R_READ = {
    True: "data <- as.data.frame(arrow::read_parquet({}))\ndata[] <- lapply(data, as.character)",
    False: "data <- read.csv({}, colClasses = 'character', na.strings = '',\n"
    "  check.names = FALSE, encoding = 'UTF-8')",
}


def _comment(sentence: str, begin: str, end: str, more: str) -> list[str]:
    first, *rest = textwrap.wrap(sentence, _WIDTH)
    lines = [begin + first, *(more + line for line in rest)]
    return [*lines[:-1], lines[-1] + end]


def _plain(text: str) -> str:
    """A name inside a comment: on one line, and unable to end it."""
    kept = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text)
    return kept.replace("*/", "* /").replace("/*", "/ *")
