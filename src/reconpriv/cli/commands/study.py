"""The researcher's command: experiment."""

from __future__ import annotations

from pathlib import Path

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import argument, option
from reconpriv.cli.process.output import give, show_json
from reconpriv.cli.process.progress import counting_steps


def experiment(
    names: list[str] = argument(
        "NAME…", "all, or: distribution, violations, error, dp-tables, margins."
    ),
    out: Path = option("--out DIR", "Where to write results, figures and the page.", Path("study")),
    fast: bool = option(
        "--fast", "Use fewer keys, queries and draws, to finish in minutes.", False
    ),
    data: Path | None = option(
        "--data FILE",
        "Your own extract with Age, Gender, Education, Marital, Race, Workclass, Occupation (CSV or"
        " Parquet) instead of the bundled census workers.",
    ),
    overwrite: bool = option("--overwrite", "Replace DIR if it is an earlier run.", False),
    json: bool = opt.JSON,
) -> None:
    """Re-run the paper's empirical study: write CSV, figures and a page on which claims hold."""
    from reconpriv.research.run import STEPS, run_study

    wanted = STEPS if "all" in names else {n: s for n, s in STEPS.items() if n in names}
    with counting_steps(sum(wanted.values())) as step:
        study = run_study(names, out, fast=fast, data=data, overwrite=overwrite, step=step)
    if json:
        show_json(
            {
                "out": str(study.folder),
                "seconds": round(study.seconds, 1),
                "findings": [
                    {"statement": f.statement, "verdict": f.verdict, "evidence": f.evidence}
                    for f in study.findings
                ],
                "files": [path.name for path in study.files],
            }
        )
    else:
        give(study, json=False)
