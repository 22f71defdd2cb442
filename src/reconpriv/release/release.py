"""A release: what the publisher made and what the analyst asks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.tables import Tabular
from reconpriv.ask.ordering import by_number
from reconpriv.columns.schema import Value, json_value
from reconpriv.engines.base import Written
from reconpriv.errors import ReleaseError, warn_caller
from reconpriv.estimate.counts import Design
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.messages.arguments import checked, checked_methods
from reconpriv.policy.promise import not_promised, promise
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.labels import labels_as_dict
from reconpriv.release.load import load_cells, load_cube, load_records, load_table
from reconpriv.release.manifest import DATA, GROUPS, MARGINS, TEST_KEY_NOTE, Manifest
from reconpriv.release.margin_file import read_margins
from reconpriv.release.queryable import Queryable
from reconpriv.theory.perturbation import local_privacy_level
from reconpriv.writing.folder import new_folder
from reconpriv.writing.marker import MANIFEST

if TYPE_CHECKING:
    from reconpriv.cells.randomness import Key
    from reconpriv.learning import IndependenceTest, ReconstructedNaiveBayes, Regression
    from reconpriv.release.record import ReviewRecord
    from reconpriv.writing.scratch import Scratch


_TOTALS = (
    "groups", "sampled_groups", "trials", "unattainable_groups", "unattainable_records",
    "unique_records",
)  # fmt: skip


@checked_methods
@dataclass(frozen=True, repr=False)
class Release(Queryable, Tabular):
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
        return promise(self.description.promise_as_dict())

    @property
    def not_promised(self) -> str:
        """What its policy leaves open, in one sentence."""
        return not_promised(self.description.promise_as_dict())

    @property
    def domain(self) -> list[Value]:
        """The sensitive values in the order in which they are shown."""
        return by_number(self.description.schema.domain)

    def checked_files(self) -> ReleaseFolder:
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
        stored = self.checked_files()
        cells = load_cells(stored, self.memory)
        tables = read_margins(stored)
        margins = prepare_margins(cells, tables, described.margins.variance, design)
        return Answerer(cells, design, margins)

    @cached_property
    def group_answerer(self) -> Answerer:
        """The same by the groups that trials are limited in: protection groups, if there are any.

        Questions about a column that they pool are asked in its coarse values.
        """
        answerer = self.answerer
        if not self.description.pooled:
            return answerer
        return Answerer(answerer.cube, answerer.design, answerer.measurements)

    def chi_square(
        self,
        columns: str | Sequence[str],
        where: str | None = None,
        *,
        margins: bool = True,
        **equal: Value,
    ) -> IndependenceTest:
        """A test of independence of the sensitive attribute from public ones, corrected.

        :param columns: one public column, or several, which are then taken jointly.
        :param where: a condition on public columns, as after WHERE in SQL.
        :param margins: whether margins are used if the release has any.
        :param equal: public columns with the value, or the list of values, that records must have.
        """
        from reconpriv.learning.independence import chi_square  # noqa: PLC0415 - knows releases

        return chi_square(self, columns, where, equal, margins=margins)

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
        from reconpriv.learning.fits import logistic_of  # noqa: PLC0415 - slow import
        from reconpriv.learning.fitting import Options, regression_on  # noqa: PLC0415

        options = Options(merge, reference, confidence, margins)
        return regression_on(self, logistic_of, target, features, where, equal, options)

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
        from reconpriv.learning.fits import linear_of  # noqa: PLC0415 - slow import
        from reconpriv.learning.fitting import Options, regression_on  # noqa: PLC0415

        options = Options(merge, reference, confidence, margins)
        return regression_on(self, linear_of, outcome, features, where, equal, options)

    def info(self) -> dict[str, Any]:
        """What a program needs to know about the release."""
        described = self.description
        domain = [json_value(value) for value in described.schema.domain]
        labels = {name: labels_as_dict(said) for name, said in described.labels.items()}
        return {
            **described.block(),
            "domain": by_number(domain),
            "release": self.place,
            "promise": self.promise,
            "not_promised": self.not_promised,
            "public_counts_exact": not described.policy.sampling_rule.coin_flips,
            "local_dp_epsilon": local_privacy_level(described.policy.retention, len(domain)),
            **({"labels": labels} if labels else {}),
            "warnings": list(self.warnings),
        }

    def to_arrow(self) -> pa.Table:
        """The published records as they are: randomised, one row per record."""
        return self._table(DATA)

    def margins(self) -> pa.Table:
        """The margins as they are published: a noisy count per table, row and sensitive value.

        A column that a table does not count by is empty there. Counts may be below 0.
        """
        return self._table(MARGINS)

    def _table(self, resource: str) -> pa.Table:
        """The published records, groups or margins."""
        if resource not in self.description.resources:
            size = self.description.policy.sampling
            whose = f" of sampling rule {size}" if resource == GROUPS else ""
            raise ReleaseError(f"{'A' if whose else 'The'} release{whose} has no {resource}.")
        stored = self.checked_files()
        return load_records(stored) if resource == DATA else load_table(stored, resource)

    def save(self, out: str | os.PathLike[str], *, overwrite: bool = False) -> Release:
        """Copy the release into a folder, to be passed on, and return the one that is there."""
        stored = self.checked_files()
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

        file = Path(path)
        designed = not (groups or margins or plain)
        check_export(file, overwrite=overwrite, script=designed)
        if groups and margins:
            raise ReleaseError("One file holds the groups or the margins, not both.")
        if plain and (groups or margins):
            raise ReleaseError("Only records can be written plain.")
        if designed:
            return self._export_designed(file, overwrite)
        table = self._table(GROUPS if groups else MARGINS if margins else DATA)
        return export_table(table, self.description.labels, file, overwrite=overwrite)

    def _export_designed(self, file: Path, overwrite: bool) -> tuple[str, ...]:
        from reconpriv.answers.check_answers import check_answers  # noqa: PLC0415 - seldom used
        from reconpriv.release.export import TARGETS, export_table  # noqa: PLC0415 - seldom used
        from reconpriv.release.export_design import check_design, designed_records  # noqa: PLC0415 - seldom used
        from reconpriv.release.export_script import export_script  # noqa: PLC0415 - seldom used

        described = self.description
        check_design(described, trials_known=described.policy.sampling_rule.trials_known)
        cube = load_cube(self.checked_files(), self.memory)
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
        self.checked_files()
        return load_release(self.path, target, overwrite=overwrite)

    def record(self, *, key: Key | bytes | str | os.PathLike[str] | None = None) -> ReviewRecord:
        """What the release itself shows of what a disclosure review asks for.

        :meth:`reconpriv.Table.record` adds what needs the table. With ``key``, the one that the
        release was made with, its ledger is looked up.
        """
        from reconpriv.cells.randomness import as_key  # noqa: PLC0415 - seldom used
        from reconpriv.release.record import review_record  # noqa: PLC0415 - seldom used
        from reconpriv.release.released_figures import released_figures  # noqa: PLC0415
        from reconpriv.tables.reviewed import entry_of  # noqa: PLC0415

        stored, described = self.checked_files(), self.description
        entry = entry_of(None if key is None else as_key(key), described, described.schema)
        figures = released_figures(stored, self.memory)
        return review_record(stored, figures, entry=entry, warnings=self.warnings)

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the analysts' report, one HTML file derived from the release alone."""
        from reconpriv.reports.analyst import write_analyst  # noqa: PLC0415 - needs an extra

        write_analyst(self, Path(path), overwrite=overwrite)

    def as_dict(self) -> dict[str, Any]:
        """The publisher's summary, for JSON."""
        summary: dict[str, Any] = {"release": self.place, "records": self.records}
        if self.written is not None:
            summary |= {name: getattr(self.written, name) for name in _TOTALS}
            summary["records_in_groups_below_5"] = self.written.few_records
        if self.tables:
            summary["tables"] = list(self.tables)
        return summary | {
            "policy": self.description.policy_as_dict(),
            "promise": self.promise,
            "not_promised": self.not_promised,
            **self.description.extent_as_dict(),
            "warnings": list(self.warnings),
            **({"notes": list(self.notes)} if self.notes else {}),
        }


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
