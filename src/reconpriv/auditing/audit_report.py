"""The report of an audit: what is at risk in a table, in figures and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconpriv.auditing.classes import EquivalenceClasses
from reconpriv.auditing.column_risk import (
    AuditFigures,
    ColumnRisk,
    ExpectedErrors,
    effect_sentence,
    identifier_note,
    identifier_sentence,
)
from reconpriv.auditing.giveaways import Giveaway
from reconpriv.auditing.obstacles import UNIQUE, Obstacle, People
from reconpriv.auditing.single_records import SingleRecords
from reconpriv.auditing.verdicts import GroupVerdict
from reconpriv.columns.schema import sections
from reconpriv.messages.readable import Readable
from reconpriv.messages.remedies import Advice
from reconpriv.policy.policy import Policy
from reconpriv.policy.promise import ONE_ROW, REFUSED, not_promised, promise
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.margins.planned import NO_MARGIN_COST, MarginCost


@dataclass(frozen=True, repr=False)
class AuditReport(Readable):
    """What a publication of this table risks, in three parts: groups, single records, columns.

    The figures for groups say what plain randomisation would let an adversary reconstruct.
    ``size_distribution`` counts groups and records by size: 1, 2-3, 4-7, … (powers of two).
    ``errors`` are those of the analysts' counts. If the effect of each column was not computed,
    ``columns_note`` says why.
    ``exposed_groups`` have an exposed value; in ``unattainable_groups`` no number of trials is
    private. ``margins`` are what margins cost the groups. With a ``protection`` of any column the
    groups are protection groups. ``dropped`` records have no sensitive value;
    they are left out and not among the ``records``. ``giveaways`` are public columns that tell the
    sensitive value, ``people`` is there if the person's number is known, ``obstacles`` are reasons
    not to publish beside nearly unique columns, and ``hints`` say what would make a better release.
    ``classes`` are the micro groups as others judge them: k-anonymity, l-diversity, t-closeness.
    """

    policy: Policy
    sensitive: str
    public: tuple[str, ...]
    records: int
    groups: int
    domain_size: int
    violating_groups: int
    violating_records: int
    exposed_groups: int
    unattainable_groups: int
    size_distribution: tuple[tuple[int, int, int, int], ...]
    worst: tuple[GroupVerdict, ...]
    single_records: SingleRecords
    cells: int
    columns: tuple[ColumnRisk, ...] = ()
    columns_note: str = ""
    errors: ExpectedErrors | None = None
    margins: MarginCost = NO_MARGIN_COST
    warnings: tuple[str, ...] = ()
    protection: Coarsening = NO_COARSENING
    dropped: int = 0
    giveaways: tuple[Giveaway, ...] = ()
    people: People | None = None
    obstacles: tuple[Obstacle, ...] = ()
    hints: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    classes: EquivalenceClasses | None = None

    @property
    def private(self) -> bool:
        """True if every group meets the policy under perturbation alone."""
        return self.violating_groups == 0

    @property
    def passes(self) -> bool:
        """True if every group is private and nothing stands in the way of a publication."""
        return self.private and self.ready

    @property
    def ready(self) -> bool:
        """True if nothing has to be removed, or accepted by an explicit word, before publishing."""
        return not self.obstacles and not any(column.refused for column in self.columns)

    @property
    def standing(self) -> str:
        """``bad`` if it does not pass, ``fair`` if somebody stands out, otherwise ``good``."""
        if not self.passes:
            return "bad"
        exposed = self.single_records.below_k or any(c.identifier for c in self.columns)
        return "fair" if exposed else "good"

    @property
    def figures(self) -> AuditFigures:
        """The figures to compare with those of the table without a column."""
        single, broken = self.single_records, (self.violating_groups, self.violating_records)
        return AuditFigures(self.groups, *broken, single.unique, single.below_k)

    @property
    def source_warnings(self) -> tuple[str, ...]:
        """The warnings but for those of nearly unique columns, which every report names itself."""
        unique = {identifier_note(one, self.records) for one in self.columns if one.identifier}
        return tuple(note for note in self.warnings if note not in unique)

    @property
    def group_word(self) -> str:
        """What its groups are called."""
        return self.protection.group_word

    @property
    def groups_sentence(self) -> str:
        """Whether groups could be reconstructed."""
        group, none = self.group_word, f"{self.unattainable_groups:,}"
        if not self.exposed_groups:
            return f"No {group} has an exposed value, so this policy protects nobody."
        if self.private:
            return f"Every {group} meets this policy with perturbation alone, without sampling."
        if not self.policy.sampling_rule.samples:
            treatment = ""
        elif not self.unattainable_groups:
            treatment = " Publishing samples those groups."
        elif self.policy.unattainable == "refuse":
            treatment = (
                " Publishing with this policy is refused: no number of trials is private in"
                f" {none} {group}s."
            )
        else:
            treatment = (
                f" Publishing samples those groups; nothing is promised for {none} of them, in"
                " which no number of trials is private."
            )
        return (
            f"Not private: {self.violating_groups:,} of {self.groups:,} {group}s, with"
            f" {self.violating_records:,} of {self.records:,} records, could be reconstructed if"
            f" the table were only perturbed.{treatment}"
        )

    @property
    def promise(self) -> str:
        """What a publication with this policy would promise."""
        return REFUSED if self._refused else promise(self.promised_by)

    @property
    def not_promised(self) -> str:
        """What it would leave open; empty if it is refused."""
        return "" if self._refused else not_promised(self.promised_by)

    @property
    def promised_by(self) -> dict[str, Any]:
        """What the promise depends on: the policy, and whether rows are people."""
        return self.policy.as_dict() | {ONE_ROW: self.one_row_per_person}

    @property
    def _refused(self) -> bool:
        unattainable = self.unattainable_groups > 0 and self.policy.unattainable == "refuse"
        several = self.people is not None and not self.one_row_per_person
        return unattainable or several or not self.policy.can_sample

    @property
    def one_row_per_person(self) -> bool:
        """True if the person's number is known, and nobody has several rows."""
        return self.people is not None and not self.people.several and not self.people.unknown

    @property
    def columns_sentence(self) -> str:
        """Which columns are nearly unique, and what leaving one out would do."""
        return Advice(
            identifier_sentence(self.columns, self.records) or "No public column is nearly unique.",
            effect_sentence(self.columns, self.figures),
            self.columns_note,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict by part: the worst first, then the others if they add anything."""
        single = self.single_records
        counted = any(one.about == UNIQUE for one in self.obstacles)
        parts = [self.groups_sentence, single.what_it_tells if counted else single.sentence]
        if single.below_k and (self.private or single.unique > self.violating_records):
            parts.reverse()
        if any(column.refused for column in self.columns):
            before = "Not ready to publish: "
            parts.insert(0, identifier_sentence(self.columns, self.records, before=before))
        elif found := identifier_sentence(self.columns, self.records):
            parts.append(found)
        parts.append(self.margins.sentence)
        return (*(one.sentence for one in self.obstacles), *filter(None, parts))

    @property
    def sentence(self) -> str:
        """The verdict, never more comforting than the worst of its parts, which comes first."""
        return Advice(*self.sentences)

    def as_dict(self) -> dict[str, Any]:
        """The report as ``audit --json`` prints it."""
        counts = (
            *("records", "dropped", "groups", "domain_size", "violating_groups"),
            *("violating_records", "exposed_groups", "unattainable_groups", "private"),
        )
        return {
            **{name: getattr(self, name) for name in counts},
            "verdict": self._verdict(),
            "policy": self.policy.as_dict(),
            "promise": self.promise,
            "not_promised": self.not_promised,
            "sensitive": self.sensitive,
            "public": list(self.public),
            "left_out": list(self.left_out),
            "size_distribution": [
                {"from": low, "to": high, "groups": groups, "records": records}
                for low, high, groups, records in self.size_distribution
            ],
            "worst": [verdict.as_dict() for verdict in self.worst],
            **sections(
                equivalence_classes=self.classes, margins=self.margins, protection=self.protection
            ),
            "warnings": list(self.warnings),
        }

    def _verdict(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "passes": self.passes,
            "groups": {
                "sentence": self.groups_sentence,
                "private": self.private,
                "groups": self.groups,
                "violating_groups": self.violating_groups,
                "violating_records": self.violating_records,
            },
            "single_records": self.single_records.as_dict(),
            "columns": {
                "sentence": self.columns_sentence,
                "identifiers": [column.name for column in self.columns if column.identifier],
                "error": None if self.errors is None else self.errors.published,
                "errors": None if self.errors is None else vars(self.errors),
                "each": [column.as_dict() for column in self.columns],
                "giveaways": [one.as_dict() for one in self.giveaways],
            },
            "people": None if self.people is None else self.people.as_dict(),
            "obstacles": [one.as_dict() for one in self.obstacles],
            "hints": list(self.hints),
        }
