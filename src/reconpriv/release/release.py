"""A release: what the publisher made and what the analyst asks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reconpriv.engines.base import Written
from reconpriv.errors import InputError, ReleaseError, warn_caller
from reconpriv.messages.arguments import checked, checked_methods
from reconpriv.messages.readable import Readable
from reconpriv.promise import not_promised, promise
from reconpriv.queries.answer import Answerer, Selected, Settings, check_equalities
from reconpriv.queries.averages import Asked as Averaged
from reconpriv.queries.averages import average_rows
from reconpriv.queries.compare import Comparison, Side, compare_sides, side_of
from reconpriv.queries.crosstab import Crosstab, cross_tabulate
from reconpriv.queries.estimate import Design, Estimate
from reconpriv.queries.figure import AVERAGE, SUM, Figure, answered, only
from reconpriv.queries.figure_rows import figure_table
from reconpriv.queries.figure_table import FigureTable, simplified
from reconpriv.queries.grouping import check_distinct
from reconpriv.queries.margins import prepare_margins
from reconpriv.queries.measures import Scores, measure_of
from reconpriv.queries.ordering import by_number
from reconpriv.queries.quantiles import check_share, quantile_rows
from reconpriv.queries.selections import Asked, both, select
from reconpriv.queries.shares import asked_share, share_rows
from reconpriv.queries.sql import unknown_column
from reconpriv.queries.table import EstimateTable
from reconpriv.queries.workload import Workload, mean_relative_error
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.labels import labels_as_dict
from reconpriv.release.load import load_cells, load_cube, load_groups, load_margins, load_records
from reconpriv.release.manifest import TEST_KEY_NOTE, Manifest
from reconpriv.release.margin_file import read_margins
from reconpriv.schema import Value, json_value
from reconpriv.sources.frame_types import as_pandas, as_polars
from reconpriv.theory.perturbation import local_privacy_level
from reconpriv.writing.folder import new_folder
from reconpriv.writing.marker import MANIFEST

if TYPE_CHECKING:
    import pandas
    import polars

    from reconpriv.learning import IndependenceTest, ReconstructedNaiveBayes, Regression
    from reconpriv.writing.scratch import Scratch


@checked_methods
@dataclass(frozen=True, repr=False)
class Release(Readable):
    """A release folder; if it was just made, also the totals that stay with its publisher.

    ``kept`` is a private folder that holds the release and goes with this object, if it was
    published without a folder of its own; :meth:`save` gives it one.
    """

    path: Path
    description: Manifest
    written: Written | None = None
    warnings: tuple[str, ...] = ()
    memory: str | None = None
    uri: str | None = None
    tables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    kept: Scratch | None = field(default=None, compare=False)

    @property
    def place(self) -> str:
        """Where the release is, in words."""
        if self.kept is not None:
            return "(not saved)"
        return self.uri or str(self.path)

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as plain values: a Data Package descriptor."""
        return self.description.as_dict()

    @property
    def records(self) -> int:
        """How many records are published."""
        return self.description.records

    @property
    def promise(self) -> str:
        """What its policy promises, in one sentence."""
        return promise(self._promised_by())

    @property
    def not_promised(self) -> str:
        """What its policy leaves open, in one sentence."""
        return not_promised(self._promised_by())

    def _promised_by(self) -> dict[str, Any]:
        return self.description.policy_as_dict() | self._margins() | self._protect()

    @property
    def domain(self) -> list[Value]:
        """The sensitive values in the order in which they are shown."""
        return by_number(self.description.schema.domain)

    def _checked_files(self) -> ReleaseFolder:
        """The files of the release, after comparing them with their hashes."""
        if self.uri is not None:
            raise ReleaseError(
                f"The release is at {self.uri}.", hint="Copy it to this machine and open it."
            )
        stored = ReleaseFolder(self.path, self.description)
        stored.check_files()
        return stored

    @cached_property
    def answerer(self) -> Answerer:
        """The cells of the release, loaded and checked, ready for questions."""
        described = self.description
        design = Design.of(described.policy, described.schema)
        stored = self._checked_files()
        cells = load_cells(stored, self.memory)
        margins = None
        if described.margins is not None:
            tables = read_margins(stored)
            margins = prepare_margins(cells, tables, described.margins.variance, design)
        return Answerer(cells, design, margins)

    @cached_property
    def group_answerer(self) -> Answerer:
        """The same by the groups that trials are limited in: protection groups, if there are any.

        Questions about a column that they pool are asked in its coarse values.
        """
        answerer = self.answerer
        if self.description.protect is None:
            return answerer
        return Answerer(answerer.cube, answerer.design)

    def count(
        self,
        where: str | None = None,
        *,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Estimate:
        """How many records of the original table satisfy a condition.

        ``where`` is what comes after WHERE in SQL; further arguments are column = value (a list,
        a range or a Series means any of them; NaN is missing). Without a condition on the sensitive
        column the answer is exact. A column called where, estimator, confidence or whole_bins is
        asked about in ``where``. A condition that cuts a bin or a group is refused; with
        ``whole_bins`` it is answered for the whole bin, and the answer says so in its remarks.
        """
        selected = self.answerer.select(where, equal, whole_bins=whole_bins)
        return self.answerer.count(selected, Settings(estimator, confidence))

    def frequencies(
        self,
        where: str | None = None,
        *,
        estimator: str = "mle",
        confidence: float = 0.95,
        simultaneous: bool = False,
        whole_bins: bool = False,
        **equal: Value,
    ) -> EstimateTable:
        """The whole sensitive distribution among the records that satisfy a condition."""
        return self.crosstab(
            [self.description.schema.sensitive.name],
            where,
            estimator=estimator,
            confidence=confidence,
            simultaneous=simultaneous,
            whole_bins=whole_bins,
            **equal,
        )

    def crosstab(
        self,
        by: Sequence[str],
        where: str | None = None,
        *,
        shares: str | None = None,
        totals: bool = False,
        widest: float | str | None = None,
        estimator: str = "mle",
        confidence: float = 0.95,
        simultaneous: bool = False,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Crosstab:
        """A count with its interval for every combination of the given attributes.

        :param by: the attributes; the last of several is the columns of the table.
        :param shares: "row", "column" or "all": also the share of each count among the records of
            its row, its column or the whole table.
        :param totals: whether to add totals by row, by column and of everything.
        :param widest: flag intervals that are wider, from end to end: a number of records, or a
            text such as "20%" of the estimate; with shares, 0.1 or "10%" is ten percentage points.
        :param simultaneous: widen the intervals so that all of them hold together (Bonferroni).

        A column with the name of a parameter is asked about in ``where``.
        """
        selected = self.answerer.select(where, equal, whole_bins=whole_bins)
        by = [by] if isinstance(by, str) else list(by)
        names = self.column_names()
        for name in by:
            if name not in names:
                raise unknown_column(name, names)
        check_distinct(by)
        return cross_tabulate(
            self.answerer, selected, by, Settings(estimator, confidence),
            shares=shares, totals=totals, widest=widest, simultaneous=simultaneous,
        )  # fmt: skip

    def sql(
        self,
        query: str,
        *,
        estimator: str = "mle",
        confidence: float = 0.95,
        simultaneous: bool = False,
        whole_bins: bool = False,
        scores: Scores | None = None,
    ) -> Estimate | EstimateTable | Figure | FigureTable:
        """Answer SELECT … FROM release …; with GROUP BY, or several figures, a table of answers.

        A SELECT may ask for count(*), share(…), avg(…), sum(…), median(…) and quantile(…, q).
        ``scores`` gives each sensitive value a number, for the averages of values that are none.
        """
        settings = Settings(estimator, confidence)
        asked = self.answerer.parse(query, whole_bins=whole_bins)
        table = figure_table(
            self.answerer, asked, settings, scores=scores, simultaneous=simultaneous
        )
        return simplified(table, asked)

    def share(
        self,
        where: str | None = None,
        *,
        among: Asked = None,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Figure:
        """What share of some records of the original table satisfies a condition.

        The condition is as in :meth:`count`. ``among`` says which records the share is of, as SQL
        or as a dictionary; without it, those with the same public values:
        ``share("sex = 'Female'", job="nurse")`` is the share of nurses among women.
        """
        counted = self.answerer.select(where, equal, whole_bins=whole_bins)
        of = None if among is None else select(self.answerer, among, whole_bins=whole_bins)
        asked = asked_share(counted, of)
        ((_, found),) = share_rows(self.answerer, asked, (), Settings(estimator, confidence))
        return answered(found)

    def compare(
        self,
        a: Asked,
        b: Asked,
        where: str | None = None,
        *,
        among: Asked = None,
        of: str = "share",
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Comparison:
        """Two shares (or two counts, with ``of="count"``): difference, ratio, whether they differ.

        ``a`` and ``b`` are conditions, in SQL or as dictionaries of column: value. ``where`` and
        further column = value arguments hold for both sides: ``compare("sex = 'Female'",
        "sex = 'Male'", job="nurse")`` compares the share of nurses among women with that among
        men. A share is among the records with the same public values, or ``among`` others. The two
        sides may overlap.
        """
        common = self.answerer.select(where, equal, whole_bins=whole_bins)
        base = None if among is None else select(self.answerer, among, whole_bins=whole_bins)

        def side(asked: Asked) -> Side:
            chosen = both(select(self.answerer, asked, whole_bins=whole_bins), common)
            return side_of(chosen if base is None else both(chosen, base), base, of)

        settings = Settings(estimator, confidence)
        return compare_sides(self.answerer, side(a), side(b), settings)

    def average(
        self,
        of: str,
        where: str | None = None,
        *,
        scores: Scores | None = None,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Figure:
        """The average of a column among the records that satisfy a condition.

        ``of`` is a public column of numbers, or the sensitive column if its values are numbers or
        bins of numbers, or have ``scores``, a number for each. Missing values do not count.
        Without a condition on the sensitive column, the average of a public one is exact.
        """
        settings = Settings(estimator, confidence)
        return self._averaged(AVERAGE, of, where, equal, scores, settings, whole_bins)

    def sum(
        self,
        of: str,
        where: str | None = None,
        *,
        scores: Scores | None = None,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Figure:
        """The sum of a column over the records that satisfy a condition; as :meth:`average`."""
        settings = Settings(estimator, confidence)
        return self._averaged(SUM, of, where, equal, scores, settings, whole_bins)

    def _averaged(
        self,
        kind: str,
        of: str,
        where: str | None,
        equal: dict[str, Value],
        scores: Scores | None,
        settings: Settings,
        whole_bins: bool,
    ) -> Figure:
        measure = measure_of(self.answerer, of, scores)
        selected = self.answerer.select(where, equal, whole_bins=whole_bins)
        name = "avg" if kind == AVERAGE else "sum"
        asked = Averaged(kind, measure, selected, f"{name}({measure.name})")
        rows = average_rows(self.answerer, asked, (), settings)
        return answered(only(rows, asked.text, kind))

    def quantile(
        self,
        of: str,
        share: float,
        where: str | None = None,
        *,
        scores: Scores | None = None,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Figure:
        """The smallest value at or below which at least a share of the records lies.

        ``of`` is as in :meth:`average`; of a column in bins, the answer is a bin, with limits that
        are borders. The classes of the sensitive column are ordered by their ``scores``.
        """
        share = check_share(share)
        measure = measure_of(self.answerer, of, scores, ranked=True)
        selected = self.answerer.select(where, equal, whole_bins=whole_bins)
        name = f"median({measure.name})" if share == 0.5 else f"quantile({measure.name}, {share:g})"
        settings = Settings(estimator, confidence)
        rows = quantile_rows(self.answerer, measure, share, selected, (), settings, name=name)
        return answered(only(rows, f"{name} among {selected.text}", "quantile"))

    def median(
        self,
        of: str,
        where: str | None = None,
        *,
        scores: Scores | None = None,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
        **equal: Value,
    ) -> Figure:
        """The median of a column: its :meth:`quantile` for one half."""
        return self.quantile(
            of,
            0.5,
            where,
            scores=scores,
            estimator=estimator,
            confidence=confidence,
            whole_bins=whole_bins,
            **equal,
        )

    def count_many(
        self,
        queries: Sequence[str | dict[str, Value]],
        *,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
    ) -> list[Estimate]:
        """Many counts in one pass over the cells: SQL texts or dictionaries of column: value."""
        if isinstance(queries, str | dict):
            raise InputError("count_many takes a list; use count or sql for a single query.")
        selected = [self.select(query, whole_bins=whole_bins) for query in queries]
        return self.answer_many(selected, estimator=estimator, confidence=confidence)

    def answer_many(
        self, queries: Sequence[Selected], *, estimator: str = "mle", confidence: float = 0.95
    ) -> list[Estimate]:
        """Answer queries that :meth:`select` has checked."""
        return self.answerer.count_many(queries, Settings(estimator, confidence))

    def select(self, query: str | dict[str, Value], *, whole_bins: bool = False) -> Selected:
        """Check a query, SQL text or a dictionary of column: value, without answering it."""
        if not isinstance(query, str):
            return self.answerer.select(None, check_equalities(query), whole_bins=whole_bins)
        asked = self.answerer.parse(query, whole_bins=whole_bins)
        if asked.count.shape.by:
            raise ReleaseError("A batch is for single counts; ask a GROUP BY query on its own.")
        if not asked.counts:
            raise ReleaseError("A batch is for single counts; ask for other figures on their own.")
        return self.answerer.settle(asked.count.text, asked.count.condition)

    def chi_square(
        self,
        columns: str | Sequence[str],
        where: str | None = None,
        *,
        margins: bool = True,
        **equal: Value,
    ) -> IndependenceTest:
        """Whether the sensitive attribute is independent of public ones, tested honestly.

        :param columns: one public column, or several, which are then taken jointly.
        :param where: a condition on public columns, as after WHERE in SQL.
        :param margins: whether margins are used if the release has any.
        :param equal: public columns with the value, or the list of values, that records must have.
        """
        from reconpriv.learning import chi_square  # noqa: PLC0415 - it knows releases

        return chi_square(self, columns, where, margins=margins, **equal)

    def naive_bayes(
        self,
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        where: str | None = None,
        alpha: float = 1.0,
        margins: bool = True,
    ) -> ReconstructedNaiveBayes:
        """A scikit-learn classifier trained on reconstructed distributions.

        ``target`` is the sensitive attribute unless another is named. Margins are used if the
        release has any; ``margins=False`` learns from the records alone.
        """
        from reconpriv.learning import ReconstructedNaiveBayes  # noqa: PLC0415 - needs an extra

        return ReconstructedNaiveBayes.from_release(
            self, target, features, where=where, alpha=alpha, margins=margins
        )

    def logistic(
        self,
        target: Value,
        features: Sequence[str] | str,
        where: str | None = None,
        *,
        merge: Mapping[str, Sequence[Value]] | None = None,
        reference: Mapping[str, Value] | None = None,
        confidence: float = 0.95,
        margins: bool = True,
        **equal: Value,
    ) -> Regression:
        """The logistic regression of the sensitive attribute that the original table would have.

        :param target: a sensitive value, or a list of them, against all others; or the name of the
            sensitive column, for a multinomial model.
        :param features: public columns. Numbers are used as they are, anything else by its values;
            ``C(age)`` uses a number by its values.
        :param where: a condition on public columns, as after WHERE in SQL.
        :param merge: new names for sets of sensitive values that are one class.
        :param reference: by column, the value that the others are compared with; otherwise it is
            the most frequent one.
        :param margins: whether margins are used if the release has any.
        :param equal: public columns with the value, or the list of values, that records must have.
        """
        from reconpriv.learning import logistic  # noqa: PLC0415 - it knows releases

        return logistic(
            self, target, features, where,
            merge=merge, reference=reference, confidence=confidence, margins=margins, **equal,
        )  # fmt: skip

    def linear(
        self,
        outcome: str,
        features: Sequence[str] | str,
        where: str | None = None,
        *,
        merge: Mapping[str, Sequence[Value]] | None = None,
        reference: Mapping[str, Value] | None = None,
        confidence: float = 0.95,
        margins: bool = True,
        **equal: Value,
    ) -> Regression:
        """The least squares fit of a public number that the original table would have.

        ``features`` may include the sensitive column; without it the fit is exact. The other
        arguments are those of :meth:`logistic`.
        """
        from reconpriv.learning import linear  # noqa: PLC0415 - it knows releases

        return linear(
            self, outcome, features, where,
            merge=merge, reference=reference, confidence=confidence, margins=margins, **equal,
        )  # fmt: skip

    def workload_error(self, workload: Workload, *, estimator: str = "mle") -> float:
        """The mean relative error |est - ans| / ans of a workload (section 6.2)."""
        estimates = self.count_many(list(workload.queries), estimator=estimator)
        return mean_relative_error(np.array([one.count for one in estimates]), workload.answers)

    def info(self) -> dict[str, Any]:
        """What a program needs to know about the release."""
        described = self.description
        domain = [json_value(value) for value in described.schema.domain]
        return {
            **described.block(),
            "domain": by_number(domain),
            "release": self.place,
            "promise": self.promise,
            "not_promised": self.not_promised,
            "public_counts_exact": not described.policy.sampling.coins,
            "local_dp_epsilon": local_privacy_level(described.policy.retention, len(domain)),
            **self._labels(),
            "warnings": list(self.warnings),
        }

    def _labels(self) -> dict[str, Any]:
        """What the columns and their values are called; empty if the source did not say."""
        said = self.description.labels
        shown = {name: labels_as_dict(labels) for name, labels in said.items()}
        return {"labels": shown} if shown else {}

    def _margins(self) -> dict[str, Any]:
        """What the manifest says about margins; empty if there are none."""
        margins = self.description.margins
        return {} if margins is None else {"margins": margins.as_dict()}

    def column_names(self) -> list[str]:
        """The public attributes, then the sensitive one."""
        return [column.name for column in self.description.schema.columns]

    def to_arrow(self) -> pa.Table:
        """The published records as they are: randomised, one row per record."""
        return load_records(self._checked_files())

    def to_pandas(self) -> pandas.DataFrame:
        """The published records as a pandas data frame; whole numbers stay whole numbers."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """The published records as a Polars data frame."""
        return as_polars(self.to_arrow())

    def margins(self) -> pa.Table:
        """The margins as they are published: a noisy count per table, row and sensitive value.

        A column that a table does not count by is empty there. Counts may be below 0.
        """
        return load_margins(self._with_margins())

    def _with_margins(self) -> ReleaseFolder:
        if self.description.margins is None:
            raise ReleaseError("The release has no margins.")
        return self._checked_files()

    def save(self, out: str | os.PathLike[str], *, overwrite: bool = False) -> Release:
        """Copy the release into a folder, to be passed on, and return the one that is there."""
        stored = self._checked_files()
        with new_folder(Path(out), overwrite=overwrite) as folder:
            for file in (*stored.files, stored.path / MANIFEST):
                shutil.copyfile(file, folder / file.name)
        return replace(self, path=Path(out), kept=None)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        groups: bool = False,
        margins: bool = False,
        plain: bool = False,
        overwrite: bool = False,
    ) -> tuple[str, ...]:
        """Write the published records for SPSS (.sav, .zsav), Stata (.dta), SAS (.xpt) or R.

        R reads .csv and, with its package arrow, .parquet. Labels are included. Records carry the
        trials and the design weight of their group, and a script beside the file (.sps, .do, .sas
        or .R) corrects a count, with its standard error; ``plain`` writes the records alone.
        ``groups`` writes the groups with their trials instead, ``margins`` the margins. Returns
        what had to be changed for the format.
        """
        from reconpriv.release.export import check_export, export_table  # noqa: PLC0415 - seldom used

        file, described = Path(path), self.description
        designed = not (groups or margins or plain)
        check_export(file, overwrite=overwrite, script=designed)
        if groups and margins:
            raise ReleaseError("One file holds the groups or the margins, not both.")
        if plain and (groups or margins):
            raise ReleaseError("Only records can be written plain.")
        if groups and described.group_files is None:
            size = described.policy.sample_size
            raise ReleaseError(f"A release of sample size {size} has no groups.")
        if designed:
            return self._export_designed(file, overwrite)
        stored = self._with_margins() if margins else self._checked_files()
        load = load_groups if groups else load_margins if margins else load_records
        return export_table(load(stored), described.labels, file, overwrite=overwrite)

    def _export_designed(self, file: Path, overwrite: bool) -> tuple[str, ...]:
        from reconpriv.queries.check_answers import check_answers  # noqa: PLC0415 - seldom used
        from reconpriv.release.export import TARGETS, export_table  # noqa: PLC0415 - seldom used
        from reconpriv.release.export_design import check_design, designed_records  # noqa: PLC0415 - seldom used
        from reconpriv.release.export_script import export_script  # noqa: PLC0415 - seldom used

        described = self.description
        check_design(described, trials_known=described.policy.sampling.trials_known)
        cube = load_cube(self._checked_files(), self.memory)
        target = TARGETS.get(file.suffix.lower())
        records = designed_records(cube, described, target.label_bytes if target else None)
        design = Design.of(described.policy, described.schema)
        answers = check_answers(cube, design, described.pooled)
        script = export_script(file, records, described, answers)
        return export_table(records.table, records.labels, file, overwrite=overwrite, script=script)

    def to_table(
        self, database: str | os.PathLike[str], name: str, *, overwrite: bool = False
    ) -> tuple[str, ...]:
        """Load the release into a database, in one transaction; return the names of its tables.

        ``database`` is postgresql://…, or a SQLite or DuckDB file. The records go into the table
        ``name`` (also schema.name), groups with their trials into ``name_groups``, margins into
        ``name_margins``, the manifest into ``name_manifest``. ``overwrite`` replaces an earlier
        release, and nothing else.
        """
        from reconpriv.release.to_database import database_target, load_release  # noqa: PLC0415 - not until used

        target = database_target(os.fspath(database), name)
        self._checked_files()
        return load_release(self.path, target, overwrite=overwrite)

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the analysts' report, one HTML file derived from the release alone."""
        from reconpriv.reports.analyst import write_analyst  # noqa: PLC0415 - needs an extra

        write_analyst(self, Path(path), overwrite=overwrite)

    def as_dict(self) -> dict[str, Any]:
        """The publisher's summary, for JSON."""
        summary: dict[str, Any] = {"release": self.place, "records": self.records}
        if self.written is not None:
            summary |= {
                "groups": self.written.groups,
                "sampled_groups": self.written.sampled_groups,
                "trials": self.written.trials,
                "unattainable_groups": self.written.unattainable_groups,
                "unattainable_records": self.written.unattainable_records,
                "unique_records": self.written.unique_records,
                "records_in_groups_below_5": self.written.few_records,
            }
        if self.tables:
            summary["tables"] = list(self.tables)
        return summary | {
            "policy": self.description.policy_as_dict(),
            "promise": self.promise,
            "not_promised": self.not_promised,
            **self._margins(),
            **self._protect(),
            "warnings": list(self.warnings),
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def _protect(self) -> dict[str, Any]:
        """How protection groups are made; empty if there are none."""
        protect = self.description.protect
        return {} if protect is None else {"protect": protect.as_dict()}


@checked
def open_release(folder: str | os.PathLike[str], *, memory: str | None = None) -> Release:
    """Open a release folder; its files are compared with their hashes on first use.

    ``memory`` (as 2GB) bounds what counting its records may take before disk is used.
    """
    manifest = Manifest.read(Path(folder))
    notes = (TEST_KEY_NOTE,) if manifest.test_key else ()
    for note in notes:
        warn_caller(note)
    return Release(Path(folder), manifest, None, notes, memory)
