"""The colours of every picture: Okabe and Ito's, each with its own mark and dash.

Everybody can tell them apart, on white and on black; still, colour is never the only cue. Numbers
are formatted by ``reconpriv.messages.numbers``.
"""

from __future__ import annotations

from dataclasses import dataclass

BLACK, BLUE, SKY, VERMILION, GREEN, ORANGE, PURPLE = (
    "#000000", "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#E69F00", "#CC79A7",
)  # fmt: skip
GREY, WHITE = "#767676", "#ffffff"
# The colour of the surrounding text, so one drawing serves light and dark pages.
INK = "currentColor"
COLOURS = (BLACK, BLUE, SKY, VERMILION, GREEN, ORANGE, PURPLE, GREY, WHITE, INK)

# For text, which needs more contrast than areas do: 4.5 to 1 on white, and enough on black.
GOOD, FAIR, BAD = "#2e8540", "#a86a00", "#d8391f"

CROSS = "M-0.9,-0.6L-0.6,-0.9L0,-0.3L0.6,-0.9L0.9,-0.6L0.3,0L0.9,0.6L0.6,0.9L0,0.3L-0.6,0.9L-0.9,0.6L-0.3,0Z"  # noqa: E501


@dataclass(frozen=True)
class Look:
    """How one series is drawn: its colour, the mark of its points, the dash of its line."""

    colour: str
    shape: str = "circle"
    dash: tuple[int, ...] = (1, 0)


FIRST = Look(BLUE, "square")
SECOND = Look(VERMILION, "triangle-up", (6, 3))
THIRD = Look(GREEN, "diamond", (2, 2))
PLAIN = Look(BLACK, "circle")
REFERENCE = Look(GREY, "circle", (3, 3))

# Their meaning in every such picture, in reports and in the studio.
SAFE, EXPOSED, BOUND = FIRST, SECOND, Look(PURPLE, "circle")
