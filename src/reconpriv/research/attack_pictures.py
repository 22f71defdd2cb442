"""One picture an attack: Okabe and Ito's colours, with a marker each, so colour is never alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconpriv.attacks.granularity import Attempt
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.policy import Policy
from reconpriv.research.figures import require_matplotlib
from reconpriv.theory.ratio import ratio_tails

Floats = NDArray[np.float64]

BLACK, BLUE, VERMILION, GREEN, ORANGE, GREY = (
    "#000000", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#999999",
)  # fmt: skip
_MODES = ("none", "paper", "octave", "public")


def _pyplot() -> Any:
    pyplot = require_matplotlib()
    pyplot.rcParams.update(
        {
            "grid.color": "#dddddd",
            "grid.alpha": 1.0,
            "axes.axisbelow": True,
            "legend.frameon": False,
        }
    )
    return pyplot


def _save(pyplot: Any, figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=130, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)


def draw_micro(results: dict[str, AttackResult], epsilon: float, path: Path) -> None:
    """The error of the most frequent value on each sample size, and how often it is under ε."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for offset, (base, result), colour, marker in zip(
        (-0.14, 0.14), results.items(), (BLUE, VERMILION), "so", strict=True
    ):
        rows = {row["sample size"]: row for row in result.table}
        x = np.arange(len(_MODES)) + offset
        for at, mode in zip(x, _MODES, strict=True):
            row = rows[mode]
            axes[0].plot([at, at], [row["error 10%"], row["error 90%"]], color=colour, lw=1.2)
            axes[0].plot([at, at], [row["error 25%"], row["error 75%"]], color=colour, lw=5)
        medians = [rows[mode]["error 50%"] for mode in _MODES]
        axes[0].plot(x, medians, marker, color="white", mec=colour, ms=6, label=base)
        under = [rows[mode]["under ε"] for mode in _MODES]
        axes[1].bar(x, under, width=0.24, color=colour, label=f"{base}, 20 keys")
        exact = [rows[m]["with copies"] or rows[m]["exact tails"] for m in _MODES]
        axes[1].plot(x, exact, "_", color=BLACK, ms=16, mew=2)
    axes[0].axhline(epsilon, color=BLACK, ls="--", lw=1)
    axes[0].text(-0.45, epsilon + 0.02, "ε", ha="left")
    axes[0].set_ylabel("relative error of the largest f\n(10, 25, 50, 75, 90 %)")
    axes[1].plot([], [], "_", color=BLACK, ms=12, mew=2, label="exact prediction")
    axes[1].set_ylabel("violating groups with error under ε")
    axes[1].set_ylim(0, 1)
    for axis in axes:
        axis.set_xticks(range(len(_MODES)), _MODES)
        axis.grid(axis="x", visible=False)
    axes[0].legend(loc="upper left", bbox_to_anchor=(0.0, 1.0))
    axes[1].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize=8)
    _save(pyplot, figure, path)


def draw_ratio(policy: Policy, path: Path) -> None:
    """The larger and the smaller exact tail over |g|·f, for two λ."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    counts = np.geomspace(0.3, 300, 160)
    for axis, f in zip(axes, (0.25, 0.8), strict=True):
        for privacy, colour in ((0.1, BLUE), (0.05, VERMILION)):
            tails = ratio_tails(counts / f, f, privacy=privacy, epsilon=policy.epsilon)
            axis.plot(counts, tails.above, color=colour, label=f"λ = {privacy}, above ε")
            axis.plot(counts, tails.below, color=colour, ls="--", label=f"λ = {privacy}, below -ε")
        axis.axhline(policy.delta, color=BLACK, lw=1, ls=":")
        axis.text(0.32, policy.delta + 0.012, "δ", color=BLACK)
        axis.set_xscale("log")
        axis.set_title(f"f = {f}", loc="left", fontsize=10)
        axis.set_xlabel("records that hold the value, |g|·f")
    axes[0].set_ylabel("exact tail of the noisy ratio")
    axes[0].legend(loc="upper right")
    _save(pyplot, figure, path)


def draw_granularity(kept: dict[str, dict[str, Attempt]], path: Path) -> None:
    """True f against the attack's and the MLE's, on every scaled sample size."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3.7), sharey=True, layout="constrained")
    for axis, size in zip(axes, ("paper", "octave", "public"), strict=True):
        found = [kept["EDU 500K"][size], kept["OCC 500K"][size]]
        truth = np.concatenate([one.truth for one in found])
        mle = np.concatenate([one.mle for one in found])
        attack = np.concatenate([one.frequency for one in found])
        axis.plot(truth, mle, "o", color=ORANGE, ms=3, mew=0, alpha=0.55, label="MLE")
        axis.plot(truth, attack, "x", color=BLUE, ms=3, mew=0.8, label="granularity attack")
        axis.plot([0.05, 1], [0.05, 1], color=BLACK, lw=0.8)
        axis.set_xscale("log")
        axis.set_yscale("log")
        ticks = [0.1, 0.2, 0.5, 1.0]
        axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
        axis.minorticks_off()
        axis.set_xlim(0.08, 1.05)
        axis.set_ylim(0.05, 1.1)
        axis.set_title(size, loc="left", fontsize=10)
        axis.set_xlabel("true largest f")
    axes[0].set_ylabel("inferred f")
    axes[0].legend(loc="upper left", markerscale=2)
    _save(pyplot, figure, path)


def draw_repeat(results: dict[str, AttackResult], path: Path) -> None:
    """The error of the average over k releases, with fresh keys and with one."""
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(5.2, 3.6), layout="constrained")
    for (base, result), colour, marker in zip(
        results.items(), (BLUE, VERMILION), "so", strict=True
    ):
        k = np.array([row["releases"] for row in result.table], dtype=np.float64)
        error = np.array([row["root mean square error"] for row in result.table])
        axis.plot(k, error, marker + "-", color=colour, label=f"{base}, fresh keys")
        axis.plot(k, np.full(k.size, error[0]), marker + ":", color=colour, mfc="white",
                  label=f"{base}, one key")  # fmt: skip
        axis.plot(k, error[0] / np.sqrt(k), color=GREY, lw=1, zorder=1)
    axis.plot([], [], color=GREY, lw=1, label="1/√k")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    ticks = [0.03, 0.1, 0.3]
    axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.set_xticks(k, [f"{i:.0f}" for i in k])
    axis.set_xlabel("releases k")
    axis.set_ylabel("root mean square relative error of f")
    axis.legend(loc="lower left", fontsize=8)
    _save(pyplot, figure, path)


def draw_differencing(estimates: tuple[Floats, Floats, Floats], path: Path) -> None:
    """X minus Y against the local estimate: on the diagonal, unless Y is another release's."""
    pyplot = _pyplot()
    local, global_, mixed = estimates
    figure, axis = pyplot.subplots(figsize=(4.6, 3.8), layout="constrained")
    axis.plot(local, mixed, "o", color=ORANGE, ms=3, mew=0, alpha=0.5,
              label="Y of another release (control)")  # fmt: skip
    axis.plot(local, global_, "x", color=BLUE, ms=4, mew=0.9, label="X and Y of one release")
    axis.set_xlabel("local estimate F'")
    axis.set_ylabel("estimate as X minus Y")
    axis.set_ylim(-0.6, 2.0)
    axis.set_xlim(0, 1.4)
    axis.legend(loc="upper left", fontsize=8, frameon=True, framealpha=0.9)
    _save(pyplot, figure, path)


def draw_side_channels(rows: Sequence[Row], path: Path) -> None:
    """Channels against sample sizes: a dot where nothing leaks, a cross where something does."""
    pyplot = _pyplot()
    names = list(dict.fromkeys(row["channel"] for row in rows))
    figure, axis = pyplot.subplots(figsize=(5.2, 0.36 * len(names) + 0.9), layout="constrained")
    for leaks, colour, marker, label in (
        ("no", GREEN, "o", "nothing but the published rows"),
        ("yes", VERMILION, "X", "tells more"),
    ):
        found = [row for row in rows if row["leaks"] == leaks]
        x = [_MODES.index(row["sample size"]) for row in found]
        y = [names.index(row["channel"]) for row in found]
        axis.plot(x, y, marker, color=colour, ms=8, label=label, ls="none")
    axis.set_xticks(range(len(_MODES)), _MODES)
    axis.set_yticks(range(len(names)), names)
    axis.set_xlim(-0.5, len(_MODES) - 0.5)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    axis.legend(loc="lower left", bbox_to_anchor=(-0.05, 1.0), ncols=2, fontsize=8)
    _save(pyplot, figure, path)
