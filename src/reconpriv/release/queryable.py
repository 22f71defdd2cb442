"""What can be asked of a release, each question with its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.ask import answer_many, answer_one
from reconpriv.answers.crosstab import Crosstab, cross_tabulate
from reconpriv.answers.figure import AVERAGE, COUNT, QUANTILE, SUM, Answer, Figure
from reconpriv.answers.select_rows import answer_select
from reconpriv.answers.tables import EstimateTable, FigureTable
from reconpriv.ask.comparisons import check_distinct, unknown_column
from reconpriv.ask.question import ComparisonQuestion, Question, asked_share
from reconpriv.ask.selections import Asked, check_equalities
from reconpriv.ask.workload import Workload, mean_relative_error
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.compare import Comparison, compare_sides
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.measures import Scores, question_of_measure
from reconpriv.estimate.quantiles import check_share
from reconpriv.messages.arguments import checked_methods
from reconpriv.messages.readable import Readable

if TYPE_CHECKING:
    from reconpriv.release.manifest import Manifest


@checked_methods
class Queryable(Readable):
    """A release that can be asked: counts, shares, averages, quantiles and tables."""

    description: Manifest

    if TYPE_CHECKING:

        @property
        def answerer(self) -> Answerer:
            """The cells of the release, ready for questions."""

    def column_names(self) -> list[str]:
        """The public attributes, then the sensitive one."""
        return [column.name for column in self.description.schema.columns]

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
            [self.description.schema.sensitive.name], where, estimator=estimator,
            confidence=confidence, simultaneous=simultaneous, whole_bins=whole_bins, **equal,
        )  # fmt: skip

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
            self.answerer, selected, by, Settings(estimator, confidence, simultaneous),
            shares=shares, totals=totals, widest=widest,
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
    ) -> Answer | EstimateTable | FigureTable:
        """Answer SELECT … FROM release …; with GROUP BY, or several figures, a table of answers.

        A SELECT may ask for count(*), share(…), avg(…), sum(…), median(…) and quantile(…, q).
        ``scores`` gives each sensitive value a number, for the averages of values that are none.
        """
        from reconpriv.ask.sql.select import parse_select  # noqa: PLC0415 - an extra

        settings = Settings(estimator, confidence, simultaneous)
        asked = parse_select(query, self.answerer, scores=scores, whole_bins=whole_bins)
        return answer_select(self.answerer, asked, settings)

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
        of = None if among is None else self.answerer.selected(among, whole_bins=whole_bins)
        return self._figure(asked_share(counted, of), estimator, confidence)

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
        base = None if among is None else self.answerer.selected(among, whole_bins=whole_bins)
        chosen = [self.answerer.selected(one, whole_bins=whole_bins) for one in (a, b)]
        question = ComparisonQuestion.of_sides(chosen, common, base, of)
        return compare_sides(self.answerer, question.a, question.b, Settings(estimator, confidence))

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
        selected = self.answerer.select(where, equal, whole_bins=whole_bins)
        question = question_of_measure(self.answerer, AVERAGE, of, selected, scores)
        return self._figure(question, estimator, confidence)

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
        selected = self.answerer.select(where, equal, whole_bins=whole_bins)
        question = question_of_measure(self.answerer, SUM, of, selected, scores)
        return self._figure(question, estimator, confidence)

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
        selected = self.answerer.select(where, equal, whole_bins=whole_bins)
        question = question_of_measure(self.answerer, QUANTILE, of, selected, scores, share)
        return self._figure(question, estimator, confidence)

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
            of, 0.5, where, scores=scores, estimator=estimator, confidence=confidence,
            whole_bins=whole_bins, **equal,
        )  # fmt: skip

    def _figure(self, question: Question, estimator: str, confidence: float) -> Figure:
        found = answer_one(self.answerer, question, Settings(estimator, confidence))
        assert isinstance(found, Figure)
        return found

    def count_many(
        self,
        queries: Sequence[str | dict[str, Value]],
        *,
        estimator: str = "mle",
        confidence: float = 0.95,
        whole_bins: bool = False,
    ) -> list[Any]:
        """Many queries at once: SQL texts, or dictionaries of column: value, which are counts.

        Counts share their passes over the cells. A SELECT may ask for any other figure as well.
        """
        if isinstance(queries, str | dict):
            raise InputError("count_many takes a list; use count or sql for a single query.")
        questions = [self.select(query, whole_bins=whole_bins) for query in queries]
        return self.answer_many(questions, estimator=estimator, confidence=confidence)

    def answer_many(
        self,
        queries: Sequence[Question | ComparisonQuestion],
        *,
        estimator: str = "mle",
        confidence: float = 0.95,
    ) -> list[Any]:
        """Answer queries that :meth:`select` has checked."""
        return answer_many(self.answerer, queries, Settings(estimator, confidence))

    def select(self, query: str | dict[str, Value], *, whole_bins: bool = False) -> Question:
        """Check a query, SQL text or a dictionary of column: value, without answering it."""
        if not isinstance(query, str):
            equal = check_equalities(query)
            return Question(COUNT, self.answerer.select(None, equal, whole_bins=whole_bins))
        from reconpriv.ask.sql.select import parse_select  # noqa: PLC0415 - an extra

        return parse_select(query, self.answerer, whole_bins=whole_bins).single

    def workload_error(self, workload: Workload, *, estimator: str = "mle") -> float:
        """The mean relative error |est - ans| / ans of a workload (section 6.2).

        It is refused for a table with another number of records than the release was made from.
        """
        mine, coin_flips = self.description, self.description.policy.sampling_rule.coin_flips
        if workload.records != mine.records and not coin_flips:  # which change the number
            raise InputError(
                f"These questions are about a table of {workload.records:,} records, and the"
                f" release has {mine.records:,}.",
                hint="Take the table as it was published: the same records, and one row of each"
                " person if one was kept.",
            )
        estimates = self.count_many(list(workload.queries), estimator=estimator)
        return mean_relative_error(np.array([one.count for one in estimates]), workload.answers)
