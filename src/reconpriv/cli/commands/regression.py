"""The commands that fit regressions to a release: logistic and linear."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.charting import CHART, OVERWRITE_CHART, check_chart_option, give_answer
from reconpriv.cli.options.declared import REQUIRED, option, shared, taking


@dataclass(frozen=True)
class RegressionOptions:
    """What both regressions take; each field is an option."""

    features: list[str] = shared(
        "--features A,B,…",
        "The columns that explain; C(age) takes the values of a number as categories.",
        REQUIRED,
        repeatable=True,
    )
    where: str | None = shared(opt.WHERE)
    merge: opt.Texts = shared(
        "--merge NAME=VALUE,…", "Take several sensitive values as one with a new name; repeatable."
    )
    reference: opt.Texts = shared(
        "--reference COLUMN=VALUE",
        "Compare the values of a column with this one instead of the most frequent; repeatable.",
    )
    confidence: float = shared(opt.CONFIDENCE)
    margins: bool = shared(opt.MARGINS)
    chart: Path | None = shared(CHART)
    overwrite: bool = shared(OVERWRITE_CHART)

    def arguments(self) -> dict[str, Any]:
        """The same by the names that it has in Python; a chart that cannot be is refused."""
        merged = opt.split_assignments("--merge", self.merge, "Write NAME=VALUE,VALUE.")
        compared = opt.split_assignments("--reference", self.reference, "Write COLUMN=VALUE.")
        features = opt.listed_names("--features", self.features)
        check_chart_option(self.chart, overwrite=self.overwrite)
        return {
            "features": features,
            "where": self.where,
            "merge": {name: opt.split_names(values) for name, values in merged.items()},
            "reference": compared,
            "confidence": self.confidence,
            "margins": self.margins,
        }


@taking(RegressionOptions)
def logistic(
    release: Path = opt.RELEASE,
    target: list[str] = option(
        "--target VALUE",
        "A sensitive value against all others (repeat it for a set of them), or the sensitive"
        " column for a multinomial model.",
        REQUIRED,
    ),
    *,
    options: RegressionOptions,
    memory: str | None = opt.MEMORY,
    json: bool = opt.JSON,
) -> None:
    """Fit the logistic regression of the sensitive column that the original table would have."""
    asked = options.arguments()
    opened = opt.open_with_warnings(release, memory)
    found = opened.logistic(target[0] if len(target) == 1 else target, **asked)
    give_answer(found, options.chart, overwrite=options.overwrite, json=json)


@taking(RegressionOptions)
def linear(
    release: Path = opt.RELEASE,
    outcome: str = option("--outcome COLUMN", "The public number to explain.", REQUIRED),
    *,
    options: RegressionOptions,
    memory: str | None = opt.MEMORY,
    json: bool = opt.JSON,
) -> None:
    """Fit the linear regression of a public number that the original table would have."""
    asked = options.arguments()
    found = opt.open_with_warnings(release, memory).linear(outcome, **asked)
    give_answer(found, options.chart, overwrite=options.overwrite, json=json)
