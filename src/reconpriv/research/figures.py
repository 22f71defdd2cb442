"""The figures: colour-blind safe, defaults marked, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reconpriv.errors import InputError
from reconpriv.extras import install_hint
from reconpriv.research.data import BASES
from reconpriv.research.results import Result
from reconpriv.research.setting import DEFAULT, METHODS, SWEEPS

# Okabe and Ito's palette, with a marker and a dash for each, so that colour is never alone.
_STYLES = {
    "UP": ("#000000", "o", "-"),
    "RP": ("#0072B2", "s", "-"),
    "octave": ("#D55E00", "^", "--"),
    "public": ("#009E73", "D", ":"),
}
_LABELS = {
    "UP": "UP (perturbation alone)",
    "RP": "RP (the paper's Algorithm 1)",
    "octave": "octave (hardened, default)",
    "public": "public (hardened)",
}
_AXES = {
    "retention": "retention probability p",
    "epsilon": "relative error ε",
    "delta": "tail probability δ",
    "records": "records |D| (thousands)",
}


def draw(result: Result, folder: Path, label: str) -> list[Path]:
    """Draw the figures of one experiment; ``label`` says what the data are."""
    drawings: dict[str, Callable[[Any, Result, str], dict[str, Any]]] = {
        "distribution": _distribution,
        "violations": _violations,
        "error": _error,
        "dp-tables": _dp_tables,
    }
    pyplot = require_matplotlib()
    written = []
    for name, figure in drawings[result.name](pyplot, result, label).items():
        for ending in ("svg", "png"):
            path = folder / f"{name}.{ending}"
            # No date in the file: the same results give the same bytes.
            metadata = {"Date": None} if ending == "svg" else None
            figure.savefig(path, dpi=150, bbox_inches="tight", metadata=metadata)
            written.append(path)
        pyplot.close(figure)
    return written


def require_matplotlib() -> Any:
    """Matplotlib's pyplot, set up for files; or how to get it."""
    try:
        import matplotlib  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(
            "The figures need the package matplotlib.",
            hint=install_hint("experiments"),
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    pyplot.rcParams.update(
        {
            "svg.hashsalt": "reconpriv",
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
        }
    )
    return pyplot


def _distribution(pyplot: Any, result: Result, label: str) -> dict[str, Any]:
    figure, axes = pyplot.subplots(1, len(BASES), figsize=(11, 3.6), layout="constrained")
    for axis, base in zip(axes, BASES, strict=True):
        rows = result.select(base=base)
        axis.bar([r["rank"] for r in rows], [100 * r["frequency"] for r in rows], color="#0072B2")
        axis.set_title(f"{base}-{rows[0]['records'] // 1000}K: {BASES[base]}, {len(rows)} values")
        axis.set_xlabel("sensitive value, most frequent first")
        axis.set_ylabel("share of records (%)")
    figure.suptitle(f"Figure 1: distribution of the sensitive attribute ({label})", fontsize=10)
    return {"figure-1-distribution": figure}


def _panels(pyplot: Any, title: str, y_label: str, plot: Callable[[Any, str], None]) -> Any:
    """Four panels, one for each parameter, sharing a y axis, defaults marked."""
    figure, axes = pyplot.subplots(
        1, len(SWEEPS), figsize=(14, 3.9), sharey=True, layout="constrained"
    )
    for axis, parameter in zip(axes, SWEEPS, strict=True):
        plot(axis, parameter)
        axis.axvline(
            _x(parameter, getattr(DEFAULT, parameter)), color="grey", linewidth=1, linestyle=":",
            label="default" if parameter == "retention" else None,
        )  # fmt: skip
        axis.set_xlabel(_AXES[parameter])
        axis.set_xticks([_x(parameter, value) for value in SWEEPS[parameter]])
    # Only now: a limit set earlier would cut off what later panels need.
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel(y_label)
    figure.suptitle(title, fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _x(parameter: str, value: float) -> float:
    return value / 1000 if parameter == "records" else value


def _violations(pyplot: Any, result: Result, label: str) -> dict[str, Any]:
    figures = {}
    for number, base in ((2, "EDU"), (4, "OCC")):

        def plot(axis: Any, parameter: str, base: str = base) -> None:
            rows = result.select(base=base, parameter=parameter)
            axis.plot(
                [_x(parameter, r["value"]) for r in rows],
                [r["percent_groups"] for r in rows],
                color="#0072B2", marker="o", label="groups",
            )  # fmt: skip
            axis.plot(
                [_x(parameter, r["value"]) for r in rows],
                [r["percent_records"] for r in rows],
                color="#D55E00", marker="^", linestyle="--", label="records in them",
            )  # fmt: skip

        title = f"Figure {number}: {base}, violating micro groups ({label})"
        figure = _panels(pyplot, title, "violating (%)", plot)
        figures[f"figure-{number}-violations-{base.lower()}"] = figure
    return figures


def _error(pyplot: Any, result: Result, label: str) -> dict[str, Any]:
    figures = {}
    for number, base in ((3, "EDU"), (5, "OCC")):

        def plot(axis: Any, parameter: str, base: str = base) -> None:
            for method in METHODS:
                rows = result.select(base=base, parameter=parameter, method=method)
                colour, marker, dash = _STYLES[method]
                axis.errorbar(
                    [_x(parameter, r["value"]) for r in rows],
                    [r["error"] for r in rows],
                    yerr=[r["spread"] for r in rows],
                    color=colour, marker=marker, linestyle=dash, markersize=4, capsize=2,
                    label=_LABELS[method],
                )  # fmt: skip

        keys = result.rows[0]["keys"]
        title = (
            f"Figure {number}: {base}, relative error of count queries ({label};"
            f" bars: standard deviation over {keys} keys)"
        )
        figure = _panels(pyplot, title, "mean relative error", plot)
        figures[f"figure-{number}-error-{base.lower()}"] = figure
    return figures


def _dp_tables(pyplot: Any, result: Result, label: str) -> dict[str, Any]:
    """Exact probability against the printed share and the simulated one."""
    figure, axis = pyplot.subplots(figsize=(5.2, 5), layout="constrained")
    printed = [r for r in result.rows if r["printed"] != ""]
    axis.plot([0, 0.42], [0, 0.42], color="grey", linewidth=1, label="equal")
    axis.scatter(
        [r["exact"] for r in printed], [r["printed"] / 100 for r in printed],
        s=18, color="#0072B2", marker="o", label="printed in the paper (of 100 draws)", alpha=0.8,
    )  # fmt: skip
    axis.scatter(
        [r["exact"] for r in result.rows], [r["simulated"] for r in result.rows],
        s=14, color="#D55E00", marker="x", linewidths=0.9,
        label=f"OpenDP's Laplace ({result.rows[0]['trials']:,} draws)",
    )  # fmt: skip
    axis.set_xlabel("exact probability of a tail")
    axis.set_ylabel("share of draws in the tail")
    axis.set_title("Tables 4 and 5: the ratio attack on noisy answers", fontsize=10)
    axis.legend(frameon=False, fontsize=8)
    del label
    return {"tables-4-5-ratio": figure}
