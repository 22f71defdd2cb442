"""Draw the figure of the first pages: docs/figures/idea.svg, and idea-narrow.svg for a phone.

Colours follow the reader's light or dark mode. The two intervals are computed, not drawn by hand.
"""

from __future__ import annotations

import math
from pathlib import Path

from reconpriv.theory.perturbation import replacement_probability

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures"
P, VALUES, TRIALS, COPIES, GROUPS = 0.5, 3, 6, 8, 1_000
PANEL, STEP, RADIUS = 290, 31, 10.5

STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #24292f; font-size: 15px }
  .head { font-size: 18px; font-weight: 700 } .soft { fill: #57606a } .strong { font-weight: 700 } .small { font-size: 13.5px }
  .bad { fill: #57606a } .good { fill: #17703a }
  .a { fill: #d9730d } .b { fill: #2f6fd0 } .c { fill: #8a97a6 }
  .copy { opacity: .38 } .ring { fill: none; stroke: #24292f; stroke-width: 2.5 }
  .line { stroke: #8a97a6; stroke-width: 1.5; fill: none } .axis { stroke: #8a97a6; stroke-width: 1 }
  .truth { stroke: #24292f; stroke-width: 3 } .wide { fill: #57606a; opacity: .28 } .narrow { fill: #17703a }
  .arrow { fill: #8a97a6 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ef } .soft { fill: #a3adba } .bad { fill: #a3adba } .good { fill: #63d48c }
    .a { fill: #f39a45 } .b { fill: #6ea4f5 } .c { fill: #7c8896 } .ring { stroke: #e6e9ef } .truth { stroke: #e6e9ef }
    .wide { fill: #a3adba; opacity: .45 } .narrow { fill: #63d48c } .copy { opacity: .45 }
  }
"""  # noqa: E501

# The values of the 48 people, row by row; and the six trials: value drawn, whether it was kept.
PEOPLE = "aabaaaaaaaacaababaaaaacaaacaabaaabaaaaaaaaaabaca"
ADA = (3, 3)
DRAWN = (("a", True), ("b", False), ("a", True), ("c", False), ("b", True), ("a", False))


def spread(share: float, trials: int) -> float:
    """Half the width of a 95 % interval for a reconstructed share (Lemma 1)."""
    w = share * P + replacement_probability(P, VALUES)
    return 1.96 * math.sqrt(w * (1 - w) / trials) / P


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """One line of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def dot(x: float, y: float, kind: str, radius: float = RADIUS) -> str:
    """One person, or one trial."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>'


def people() -> list[str]:
    """Panel 1: the group as it is."""
    parts = [
        text(0, 18, "Ada's group", "head"),
        text(0, 42, "48 people of her age, sex and town", "soft"),
    ]
    for i, kind in enumerate(PEOPLE):
        row, column = divmod(i, 8)
        x, y = 20 + column * STEP, 74 + row * STEP
        parts.append(dot(x, y, kind))
        if (row, column) == ADA:
            parts.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS + 4:g}" class="ring"/>')
    for x, kind, name in ((0, "a", "diabetes"), (90, "b", "asthma"), (167, "c", "healthy")):
        parts += [dot(x + 8, 272, kind, 7), text(x + 20, 277, name, "soft small")]
    parts += [dot(254, 272, "ring", 7), text(266, 277, "Ada", "small strong")]
    share = f"{100 * PEOPLE.count('a') / 48:.0f} %"
    parts.append(text(0, 306, f"{share} have diabetes:", "strong"))
    parts.append(text(0, 327, "Ada most likely does, too.", "strong"))
    return parts


def release() -> list[str]:
    """Panel 2: few trials, copied up to the size of the group."""
    parts = [
        text(0, 18, "What is published", "head"),
        text(0, 42, "6 random draws, 8 copies of each", "soft"),
    ]
    for row, (kind, kept) in enumerate(DRAWN):
        y = 74 + row * STEP
        parts.append(text(56, y + 5, "kept" if kept else "random", "soft", "end"))
        parts.append(dot(76, y, kind, RADIUS + 1.5))
        copies = (dot(108 + i * 24.5, y, f"{kind} copy", 9) for i in range(COPIES - 1))
        parts += copies
    parts.append(text(0, 261, "A true value is kept half of the time;", "soft"))
    parts.append(text(0, 281, "nobody can see which ones were.", "soft"))
    parts.append(text(0, 306, "Copies say nothing new:", "strong"))
    parts.append(text(0, 327, "only the 6 draws tell anything.", "strong"))
    return parts


def reconstruction() -> list[str]:
    """Panel 3: what undoing the randomness reveals about one group, and about many."""
    one, many = PEOPLE.count("a") / 48, 0.40
    rows = (
        (92, "in Ada's group", one, spread(one, TRIALS), "wide", "bad", "hardly anything"),
        (212, "in 1,000 groups", many, spread(many, TRIALS * GROUPS), "narrow", "good", "accurate"),
    )
    parts = [
        text(0, 18, "What anybody can work out", "head"),
        text(0, 42, "the share who have diabetes", "soft"),
    ]
    for y, name, share, half, bar, mood, verdict in rows:
        low, high = max(0.0, share - half), min(1.0, share + half)
        left, width = 270 * low, max(270 * (high - low), 5)
        told = f"{low:.0%} to {high:.0%}".replace("%", " %")
        parts += [
            text(0, y - 12, name, "strong"),
            text(270, y - 12, verdict, f"strong {mood}", "end"),
            f'<line x1="0" y1="{y + 14}" x2="270" y2="{y + 14}" class="axis"/>',
            f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="28" rx="3" class="{bar}"/>',
            f'<line x1="{270 * share:.1f}" y1="{y - 4}" x2="{270 * share:.1f}" y2="{y + 32}" class="truth"/>',  # noqa: E501
            text(270 * share, y + 50, "true", "soft", "middle"),
            text(
                0 if mood == "bad" else 270, y + 50, told, mood, "start" if mood == "bad" else "end"
            ),
        ]
    parts.append(text(0, 306, "Ada's group stays uncertain;", "strong"))
    parts.append(text(0, 327, "counts of many are accurate.", "strong"))
    return parts


def arrow(x: float, y: float, *, down: bool) -> str:
    """From one panel to the next."""
    turn = f"rotate(90 {x} {y})" if down else ""
    points = f"{x - 14},{y - 5} {x},{y - 5} {x},{y - 13} {x + 14},{y} {x},{y + 13} {x},{y + 5} {x - 14},{y + 5}"  # noqa: E501
    return f'<polygon points="{points}" transform="{turn}" class="arrow"/>'


def drawing(width: int, height: int, panels: list[tuple[int, int]], arrows: list[str]) -> str:
    """The three panels in position."""
    parts = [
        f'<g transform="translate({x} {y})">' + "\n".join(panel) + "</g>"
        for (x, y), panel in zip(panels, (people(), release(), reconstruction()), strict=True)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">\n<title>How a group is protected</title>'
        f"\n<style>{STYLE}</style>\n" + "\n".join([*parts, *arrows]) + "\n</svg>\n"
    )


def figures() -> dict[str, str]:
    """Both figures, by file name."""
    across = [arrow(318, 150, down=False), arrow(680, 150, down=False)]
    below = [arrow(160, 366, down=True), arrow(160, 756, down=True)]
    return {
        "idea.svg": drawing(1020, 345, [(6, 5), (362, 5), (728, 5)], across),
        "idea-narrow.svg": drawing(316, 1130, [(10, 5), (10, 395), (10, 785)], below),
    }


if __name__ == "__main__":
    for name, content in figures().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
