"""A table with roles for its columns: what ``reconpriv.read`` returns.

What an audit does not need is imported by the methods that do: every command starts here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.column_risk import ColumnRisk
from reconpriv.auditing.giveaways import ColumnsSeen
from reconpriv.auditing.obstacles import Accepted, giveaway_obstacle
from reconpriv.auditing.single_records import K, check_k
from reconpriv.auditing.verdicts import verdict_table
from reconpriv.cells.cube import collect
from reconpriv.cells.randomness import Key, as_key
from reconpriv.columns.schema import MAX_UNIQUE, Value, looks_like_identifier
from reconpriv.engines.base import Progress, no_progress
from reconpriv.engines.choice import open_engine
from reconpriv.errors import InputError
from reconpriv.messages.arguments import checked_methods
from reconpriv.policy.old_names import takes_old_lists
from reconpriv.policy.policy import Policy
from reconpriv.policy.presets import policy_for
from reconpriv.tables.audited import BatchWatcher
from reconpriv.tables.opened import OpenTable
from reconpriv.theory.tails.bounds import Bound, TailBound
from reconpriv.tuning.tuner import Tuner
from reconpriv.writing.folder import is_uri

if TYPE_CHECKING:
    from reconpriv.answers.answerer import Answerer
    from reconpriv.ask.workload import Workload
    from reconpriv.policy.margin_settings import Margins
    from reconpriv.release.record import ReviewRecord
    from reconpriv.release.release import Release
    from reconpriv.tuning.report import TuneReport


@checked_methods
class Table(OpenTable):
    """A table behind an engine, with its schema known and its input checked."""

    def audit(
        self,
        policy: Policy | str | None = None,
        *,
        worst: int = 10,
        k: int = K,
        columns: bool | None = None,
        keep_identifier: Iterable[str] = (),
        keep_giveaway: Iterable[str] = (),
        max_unique: float = MAX_UNIQUE,
        progress: Progress = no_progress,
        watch: Sequence[BatchWatcher] = (),
    ) -> AuditReport:
        """Test micro groups (Corollary 2), single records and columns against the policy.

        ``policy`` may be the name of a preset; without one it is the recommended policy.
        ``k``: records in groups of fewer than ``k`` are counted. ``columns`` says whether to
        compute what the audit would be without each public column; None leaves that out if the
        cells do not fit into memory. ``keep_identifier`` names nearly unique columns, and
        ``keep_giveaway`` columns that give the sensitive value away, that are kept on purpose; at
        most the share ``max_unique`` of the records may be unique on the public columns. Each
        function in ``watch`` sees every batch of groups, in the same single pass. If the policy
        asks for protection groups, these are the groups.
        """
        from reconpriv.tables.audited import audit_table  # noqa: PLC0415

        accepted = Accepted.of(self.schema, keep_identifier, keep_giveaway, max_unique)
        return audit_table(
            self,
            self.fitted(policy),
            accepted,
            worst=worst,
            k=check_k(k),
            columns=columns,
            progress=progress,
            watch=watch,
        )

    def audit_groups(
        self, policy: Policy | str | None = None, *, exact: bool = False
    ) -> Iterator[pa.Table]:
        """Every group with its verdict, batch by batch; ``exact`` adds the exact tails."""
        policy = self.fitted(policy)
        counted, groups = self.margin_plan(policy).counted, self.groups(policy)
        schema = groups.group_schema
        return (
            verdict_table(batch.whole, schema, policy, exact=exact, counted=counted)
            for batch in groups.batches()
        )

    def publish(
        self,
        policy: Policy | str | None = None,
        out: str | os.PathLike[str] | None = None,
        *,
        key: Key | bytes | str | os.PathLike[str] | None = None,
        file_format: str = "parquet",
        overwrite: bool = False,
        keep_identifier: Iterable[str] = (),
        keep_giveaway: Iterable[str] = (),
        max_unique: float = MAX_UNIQUE,
        second_sample: bool = False,
        role_change: bool = False,
        record: str | os.PathLike[str] | None = None,
        progress: Progress = no_progress,
        also: Callable[[Path], None] | None = None,
    ) -> Release:
        """Write a release folder; see docs/threat-model.md for what it promises.

        ``policy`` may be the name of a preset; without one it is the recommended policy, fitted to
        the table. ``out`` is the folder, which has to be named.

        A nearly unique public column is refused unless ``keep_identifier`` names it, one that gives
        the sensitive value away unless ``keep_giveaway`` does, people with several rows always, and
        a table in which more than the share ``max_unique`` of the records is unique.

        The ledger of a key file records what is published with it. Another p, domain or set of
        columns for the same table is refused unless ``second_sample`` is true, and a column that
        the key published in another role unless ``role_change`` is true.

        Without a key a fresh one is drawn and forgotten: a second publication would then be an
        independent sample, which an adversary could average with the first. ``record`` is a file
        for the :meth:`record` of this publication. ``also`` is called with the whole folder before
        it takes its place; if that fails, nothing is left.
        """
        from reconpriv.ledger.account import Account  # noqa: PLC0415
        from reconpriv.release import publication  # noqa: PLC0415
        from reconpriv.release.release import Release  # noqa: PLC0415

        if out is None:
            raise publication.no_folder("publish(out='release')")
        publication.check_format(file_format)
        if record is not None:
            self._check_record(Path(record), out, overwrite=overwrite)
        policy, secret = self.fitted(policy), as_key(key)
        policy.check_sampling()
        accepted = Accepted.of(self.schema, keep_identifier, keep_giveaway, max_unique)
        if self.one_row_each:
            self.keep_one_row_each(secret)
        self.checks.refuse(accepted)
        columns = ColumnsSeen(self.schema)
        account = Account.open(
            secret, self.schema, policy, second_sample=second_sample, role_change=role_change
        )
        original, secret = secret, replace(secret, file=None)  # workers need not know where it lies
        manifest, written, plan = publication.write_release(
            self.grouped(progress),
            policy,
            secret,
            publication.Destination(out, file_format, overwrite, also),
            labels=self.labels,
            watchers=[columns],
            check=lambda found: self.checks.refuse_written(
                found, columns.giveaways(policy.harmless), accepted
            ),
            account=account,
        )
        self._warn_of_identifiers(kept=True)
        self._published_as(policy, manifest.protect)
        warned, notes = self.warnings + manifest.protect.notes, self.notes
        warned += publication.publication_notes(
            policy, secret, written, plan, manifest.group_schema
        )
        if account is not None:
            warned, notes = warned + tuple(account.warnings), notes + tuple(account.notes)
        uri = str(out) if is_uri(out) else None
        release = Release(Path(out), manifest, written, warned, uri=uri, notes=notes)
        if record is not None:
            self.record(release, key=original).save(record, overwrite=overwrite)
        return release

    @staticmethod
    def _check_record(record: Path, out: str | os.PathLike[str], *, overwrite: bool) -> None:
        """Refuse a record that cannot be made or written, before any work is done."""
        from reconpriv.release.record import check_record  # noqa: PLC0415

        if is_uri(out):
            raise InputError(
                "A record is made from a release on this machine.",
                hint="Publish into a folder, or copy the release here and make the record then.",
            )
        check_record(record, overwrite=overwrite, out=Path(out))

    def record(
        self,
        release: Release | str | os.PathLike[str],
        *,
        key: Key | bytes | str | os.PathLike[str] | None = None,
    ) -> ReviewRecord:
        """Everything that a disclosure review asks for of this table and its release: internal.

        ``release`` must have been made from this table with the roles that it has here; it is
        compared. ``key`` is the one that it was made with: its ledger is looked up. The record has
        roles, policy, promise, checks, hashes and versions, and no data; its method ``save`` writes
        it.
        """
        from reconpriv.release.release import Release, open_release  # noqa: PLC0415
        from reconpriv.tables.reviewed import check_same_schema, review_table  # noqa: PLC0415

        if not isinstance(release, Release):
            release = open_release(release)
        secret, described = None if key is None else as_key(key), release.description
        check_same_schema(self.schema, described.schema)
        if self.one_row_each and secret is not None:
            self.keep_one_row_each(secret)
        self._published_as(described.policy, described.protect)
        return review_table(self, release.checked_files(), secret, release.warnings)

    def workload(
        self,
        *,
        queries: int = 5_000,
        min_selectivity: float = 0.001,
        max_attributes: int = 3,
        seed: int = 0,
    ) -> Workload:
        """The paper's pool of random count queries on this table, with their true answers."""
        from reconpriv.ask.workload import make_workload  # noqa: PLC0415

        return make_workload(
            collect(self.batches(), self.schema),
            queries=queries,
            min_selectivity=min_selectivity,
            max_attributes=max_attributes,
            seed=seed,
        )

    def count(self, where: str | None = None, *, whole_bins: bool = False, **equal: Value) -> int:
        """The true number of records that satisfy a condition: for the publisher alone.

        The condition is written as for :meth:`reconpriv.release.release.Release.count`.
        """
        from reconpriv.estimate.counts import Settings  # noqa: PLC0415

        selected = self.truth.select(where, equal, whole_bins=whole_bins)
        return round(self.truth.count(selected, Settings()).count)

    @cached_property
    def truth(self) -> Answerer:
        """The original table, ready for the questions that a release is asked.

        Its answers are the truth: for the publisher alone.
        """
        from reconpriv.answers.answerer import Answerer  # noqa: PLC0415
        from reconpriv.estimate.counts import Design  # noqa: PLC0415

        # With p = 1 every trial keeps its value, so an estimate is the count itself.
        design = Design(1.0, self.schema.domain_size, "none")
        return Answerer(collect(self.batches(), self.schema), design)

    def with_records(self, records: pa.Table) -> Table:
        """The same schema and labels over other records, which are recoded and name nobody."""
        other = Table(open_engine(records), replace(self.schema, person=None), dropped=None)
        other.labels = self.labels
        return other

    def tuner(
        self, *, queries: int = 5_000, seed: int = 0, progress: Progress = no_progress
    ) -> Tuner:
        """One pass over the cells; then ``tuner.setting(policy)`` takes about a millisecond."""
        batches = self.batches(progress=progress)
        found = Tuner.of(batches, self.schema, queries=queries, seed=seed)
        if looks_like_identifier(found.batch.groups, self.schema.records):
            self._warn_of_identifiers()
        return found

    def _warn_of_identifiers(self, *, kept: bool = False) -> None:
        self.warn_of(
            ColumnRisk(name, values, identifier=True, kept=kept)
            for name, values in self.checks.identifiers.items()
        )

    @takes_old_lists
    def tune(
        self,
        *,
        retentions: Iterable[float] | None = None,
        tolerances: Iterable[float] | None = None,
        doubts: Iterable[float] | None = None,
        samplings: Iterable[str] | str | None = None,
        exposed_above: Iterable[float] | None = None,
        harmless: Iterable[Value] | None = None,
        margins: Iterable[Margins | float | None] | None = None,
        bound: str | Bound | TailBound | None = None,
        max_error: float | None = None,
        rho1: float | None = None,
        rho2: float | None = None,
        min_group_error: float | None = None,
        max_reconstructed: float | None = None,
        max_pooled: float | None = None,
        current: Policy | str | None = None,
        weaker_records: bool = False,
        pooled: bool | None = None,
        queries: int = 5_000,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> TuneReport:
        """Try policies without publishing: their violations, trials, error and risk.

        ``max_error`` is the largest acceptable mean relative error of the workload, ``rho2`` the
        largest belief in a value after seeing it, if it was at most ``rho1`` (0.1) before, and
        ``min_group_error`` the smallest error that an adversary must make in every group.
        ``max_reconstructed`` is the largest share of people whose group's most exposed value may be
        estimated within ±50 % from the group's own records, ``max_pooled`` the same with the help
        of neighbouring groups. ``current`` is the policy in use, by default that of ``publish``
        for this table: without ``rho2``, no recommended setting protects single records less,
        unless ``weaker_records`` is true.

        ``exposed_above`` lists shares above which a value counts as exposed. ``harmless`` holds for
        all settings, the current policy included. ``bound`` is by default that of the current
        policy. ``margins`` lists the ε of margins to try, 0 or None for none;
        without it, those of the current policy. They spend a budget of their own.

        ``pooled`` says whether to measure what pooling tells under the settings that the report
        describes; None does so if that takes seconds.
        """
        from reconpriv.attacks.pool import pooled_share, quickly_pooled  # noqa: PLC0415
        from reconpriv.tuning.recommend import check_target  # noqa: PLC0415
        from reconpriv.tuning.report import Target  # noqa: PLC0415
        from reconpriv.tuning.sweep import sweep  # noqa: PLC0415

        target = Target(
            max_error,
            rho1,
            rho2,
            min_group_error,
            weaker_records,
            max_reconstructed=max_reconstructed,
            max_pooled=max_pooled,
        )
        check_target(target)
        fit = policy_for(current, self.schema)
        if harmless is not None:
            changed = replace(fit.policy, harmless=harmless)  # type: ignore[arg-type]
            fit = replace(fit, policy=changed.on(self.schema))
        tuner, now = self.tuner(queries=queries, seed=seed, progress=progress), fit.policy
        if pooled is None:
            pooled = max_pooled is not None or quickly_pooled(tuner.cube)
        found = sweep(
            tuner,
            target=target,
            current=now,
            pooled=partial(pooled_share, tuner.cube, exposing=now) if pooled else None,
            retentions=retentions,
            tolerances=tolerances,
            doubts=doubts,
            samplings=samplings,
            exposed_above=exposed_above,
            margins=margins,
            bound=bound,
        )
        seen = ColumnsSeen(self.schema)
        seen.add(tuner.batch)
        told = seen.giveaways(now.harmless, tuner.cube)
        obstacles = (
            self.checks.people_obstacle(),
            giveaway_obstacle(told, self.schema.sensitive.name, Accepted()),
        )
        warned = tuple(one.sentence for one in obstacles if one is not None)
        identifiers = tuple(
            ColumnRisk(name, values, identifier=True)
            for name, values in self.checks.known_identifiers.items()
        )
        found = replace(found, warnings=self.warnings + warned, identifiers=identifiers)
        return found.noted(fit.notes)

    def report(
        self,
        policy: Policy | str | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        release: Release | None = None,
        source: str = "",
        overwrite: bool = False,
        k: int = K,
        progress: Progress = no_progress,
        **accepted: Any,
    ) -> None:
        """Write the publisher's report, one HTML file about the raw table: not for release.

        ``policy`` is as in :meth:`publish`; ``path`` has to be named.
        ``release`` is what was published with this policy, ``source`` a name to show for the table.
        ``accepted`` is what the steward accepts, as :meth:`audit` takes it: ``keep_identifier``, ….
        """
        from reconpriv.reports import internal  # noqa: PLC0415 - needs an extra

        if path is None:
            raise InputError(
                "There is no file to write the report to.",
                hint="Give one: report(path='report.html').",
            )
        out = None if release is None else release.path
        internal.check_internal(Path(path), overwrite=overwrite, out=out)
        found = internal.find(
            self,
            self.fitted(policy),
            release=release,
            source=source,
            k=k,
            progress=progress,
            **accepted,
        )
        internal.write_findings(found, Path(path), overwrite=overwrite)
