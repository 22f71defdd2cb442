"""A result as a document: a few parts, which `show.text` and `show.html` render.

A result says which parts it has (`show.results`), a report adds sections around them. Only the two
renderers know how a part looks on a terminal, in a notebook, in a report or in the studio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from reconpriv.messages.one_line import shortened
from reconpriv.messages.phrases import group_words
from reconpriv.show.charts import palette

GOOD, FAIR, BAD = "good", "fair", "bad"


@dataclass(frozen=True)
class Headline:
    """The verdict: its first sentence stands out, in the colour of its tone."""

    text: str
    tone: str = ""
    rest: tuple[str, ...] = ()


@dataclass(frozen=True)
class Heading:
    """The title of the parts below it."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Plain text with code between backticks; ``kind`` is "", "lead", "note" or "promise".

    A ``joined`` one follows the part above without a blank line.
    """

    text: str
    kind: str = ""
    name: str = ""
    joined: bool = False


@dataclass(frozen=True)
class Facts:
    """Names and values, but for empty ones; pages set the ``quoted`` apart.

    ``spaced`` is for long values.
    """

    rows: Sequence[tuple[str, str]]
    quoted: tuple[str, ...] = ()
    spaced: bool = False

    def __post_init__(self) -> None:
        """Leave out what says nothing."""
        object.__setattr__(self, "rows", tuple(row for row in self.rows if row[1]))


@dataclass(frozen=True)
class Field:
    """A column of a grid.

    With a ``form`` (a format or a function) it is aligned right, unless it is ``text``.
    ``picture`` columns hold bars and whiskers, which only pages show.
    """

    name: str
    form: str | Callable[[Any], str] | None = None
    picture: bool = False
    text: bool = False

    @property
    def right(self) -> bool:
        """True if the cells are aligned right."""
        return self.form is not None and not self.text

    def written(self, value: Any) -> str:
        """A cell as text; a missing number is a dash."""
        if value is None:
            return "-"
        if self.form is None:
            return str(value)
        if isinstance(value, str) and not callable(self.form):
            return value
        return self.form(value) if callable(self.form) else format(value, self.form)


def number(name: str, form: str | Callable[[Any], str] = ",") -> Field:
    """A column of numbers; by default counts."""
    return Field(name, form)


def figure(name: str) -> Field:
    """A column of figures that are written already, such as intervals."""
    return Field(name, str)


@dataclass(frozen=True)
class Grid:
    """A table: fields, rows of values, and a note below it.

    ``tones`` colour cells, by row and column, on a terminal. ``headed`` is False if the names of
    the fields are not shown. Pages show a ``closed`` one once its title is clicked.
    """

    fields: Sequence[Field]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    note: str = ""
    headed: bool = True
    spaced: bool = False
    joined: bool = False
    closed: bool = False
    tones: Callable[[int, int], str] | None = None

    @property
    def texts(self) -> list[list[str]]:
        """The cells as text, without pictures."""
        kept = [i for i, field in enumerate(self.fields) if not field.picture]
        return [[self.fields[i].written(row[i]) for i in kept] for row in self.rows]


@dataclass(frozen=True)
class Bar:
    """A bar as long as its share of the longest."""

    share: float


@dataclass(frozen=True)
class Whisker:
    """An interval with its value on a line from 0 to ``top``."""

    low: float
    value: float
    high: float
    top: float
    colour: str = palette.BLUE


@dataclass(frozen=True)
class ShareBar:
    """A share of the records as a bar, with the end of a sentence: "… of the records ``are``"."""

    share: float
    are: str
    colour: str


class Card(NamedTuple):
    """A large figure with its name, a remark and the tone in which a page shows it."""

    name: str
    figure: str
    remark: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Cards:
    """Large figures side by side."""

    cards: Sequence[Card]


@dataclass(frozen=True)
class Plot:
    """A Vega-Lite specification with its caption, and the table of what it shows."""

    name: str
    spec: dict[str, Any]
    caption: str
    table: Grid | None = None


@dataclass(frozen=True)
class Profiles:
    """For each column, shares of some values as bars: (value, share, remark)."""

    columns: Sequence[tuple[str, Sequence[tuple[str, float, str]]]]
    colour: str


@dataclass(frozen=True)
class Snippet:
    """Code or a command to copy."""

    text: str


@dataclass(frozen=True)
class Closed:
    """Parts that a page shows once their title is clicked, and a terminal not at all."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class OnPage:
    """Parts that a terminal does not show."""

    parts: Sequence[Part]


@dataclass(frozen=True)
class OnTerminal:
    """Parts that a page does not show."""

    parts: Sequence[Part]


Part = (
    Headline | Heading | Paragraph | Facts | Grid | ShareBar | Whisker | Cards | Plot | Profiles
    | Snippet | Closed | OnPage | OnTerminal
)  # fmt: skip
Document = Sequence[Part]


def any_figure(value: Any) -> str:
    """A figure of any kind: three digits, thousands separated, a group by its columns."""
    if isinstance(value, dict):
        return group_words(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else shortened(str(value))


def rows_grid(title: str, rows: Sequence[dict[str, Any]], *, closed: bool = False) -> Grid:
    """Rows of figures under the names of their columns; a row may lack some."""
    known = {name: value for row in reversed(rows) for name, value in row.items()}
    names = dict.fromkeys(name for row in rows for name in row)
    fields = [
        Field(
            name, any_figure, text=not isinstance(known[name], int | float) or known[name] is True
        )
        for name in names
    ]
    cells = [[row.get(name) for name in names] for row in rows]
    return Grid(fields, cells, title, closed=closed)


def noted(remarks: Sequence[str]) -> str:
    """Remarks as the note of a table, a line each."""
    return "\n".join(f"note: {remark}." for remark in remarks)
