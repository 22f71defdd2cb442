"""The release that a command asks, and the options that its questions share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv.cli.choices import registered
from reconpriv.cli.output import say_all

if TYPE_CHECKING:
    from reconpriv.release.release import Release

ReleaseFolder = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release folder.")]
EstimatorName = Annotated[
    str,
    typer.Option(
        "--estimator",
        metavar="{estimators|}",
        autocompletion=registered("estimators"),
        help="How to estimate: {estimator labels}.",
    ),
]
Confidence = Annotated[
    float, typer.Option("--confidence", help="The confidence level of the intervals.")
]
Margins = Annotated[
    bool,
    typer.Option(
        "--margins/--no-margins", help="Use the margins of the release, or its records alone."
    ),
]
WholeBins = Annotated[
    bool,
    typer.Option(
        "--whole-bins", help="If a condition cuts a bin or group, count all of it and say so."
    ),
]


def open_with_warnings(folder: Path, memory: str | None = None) -> Release:
    """Open a release and print what its manifest warns of."""
    from reconpriv.release.release import open_release

    opened = open_release(folder, memory=memory)
    say_all("warning", opened.warnings)
    return opened
