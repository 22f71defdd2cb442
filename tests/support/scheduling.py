"""Which tests share a worker, and in which order: fixtures that are slow to make are made once.

All of a file runs on one worker, and some files run together. The slow ones come first, so no
worker is left with one of them while the other is idle. (xdist's own mark for this,
``xdist_group``, has no effect with pytest 9.)
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from xdist.scheduler import LoadScopeScheduling

# The first matching pattern counts. Slowest first, but the two Spark groups apart: together they
# would wait for each other's Java on two cores.
GROUPS = {
    "*/system/studio/*.py": "a browser",
    "*/test_site.py": "a browser",
    "*/test_spark_[cp]*.py": "processes of Spark",  # cluster, connect, process
    "*/tuning/*.py": "a tuner",
    "*/test_study.py": "a run of the study",
    "*/test_spark_*.py": "a session of Spark",
    "*/test_every_combination.py": "a session of Spark",
    "*/test_figure_coverage.py": "coverage of figures",
    "*/test_coverage_with_margins.py": "coverage with margins",
    "*/test_examples.py": "examples",
    "*/test_published_distributions.py": "published distributions",
    "*/test_coverage_tables.py": "tables of coverage",
    "*/test_coverage_of_intervals.py": "coverage of intervals",
    "*/test_reports.py": "reports",
    "*/test_notebooks.py": "notebooks",
    "*/test_packaging.py": "packaging",
    "*/test_r_package.py": "a package of R",
    "*/test_interrupted.py": "processes that are stopped",
    "*/test_failing_output.py": "processes that cannot write",
    "*/test_databases_postgresql.py": "a server of PostgreSQL",
    "*/test_answers_are_duckdbs.py": "the oracle",
    "*/test_inputs.py": "inputs",
    "*/test_release.py": "a release",
    "*/test_bin_intervals.py": "intervals of bins",
    "*/test_rows.py": "rows of attacks",
    "*/test_cut_protection_groups.py": "cut protection groups",
    "*/test_asking.py": "queries",
    "*/test_bad_input.py": "bad input",
    "*/test_learning_*.py": "learning",
    "*/test_audit_*.py": "audits",
}


def file_of(nodeid: str) -> str:
    """The file of a test."""
    return nodeid.partition("::")[0]


def place(nodeid: str) -> tuple[int, str]:
    """The position of a test in the order, and the group that shares its worker."""
    file = file_of(nodeid)
    for number, (pattern, group) in enumerate(GROUPS.items()):
        if fnmatch(f"/{file}", pattern):
            return number, group
    return len(GROUPS), file


class ByGroup(LoadScopeScheduling):
    """One group per worker at a time, in the order in which the tests were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return place(nodeid)[1]


def make_scheduler(config: Any, log: Any) -> ByGroup:
    """For the hook ``pytest_xdist_make_scheduler``."""
    config.option.loadscopereorder = False
    return ByGroup(config, log)
