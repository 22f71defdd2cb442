"""A verdict agrees with its figures, and holds only for the settings it was computed for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from htmltools import Tag, tags

import reconpriv as rp
from reconpriv.studio import neighbours
from reconpriv.studio.answers import number
from reconpriv.studio.desk import Desk, Settled
from reconpriv.studio.judged import Judged, shown
from reconpriv.studio.live import Live, make_live
from reconpriv.studio.plan import Roles
from reconpriv.studio.step_policy import count_cells, try_settings
from reconpriv.studio.targets import (
    WISHES,
    Asked,
    advice,
    dials_of,
    effects,
    parameter_changes,
    standing,
    suggestion,
    target_of,
    weakens,
)
from reconpriv.studio.verdict import (
    columns_table,
    details_cards,
    group_verdict,
    plain_verdict,
    verdict_card,
)
from reconpriv.tuning.report import Setting

POLICY = rp.Policy(0.5, 0.5, 0.3)
TONES = {"good": "good", "warning": "warn", "error": "bad"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def settled(desk: Desk) -> Settled:
    roles = Roles("occupation", ("age", "race", "sex"), missing="value")
    return desk.settle(desk.look("example:adult"), roles)


@pytest.fixture(scope="module")
def tuner(desk: Desk, settled: Settled) -> Any:
    return desk.tuner(settled)


@pytest.fixture(scope="module")
def report(desk: Desk, settled: Settled) -> rp.AuditReport:
    return desk.audit(settled, POLICY, worst=1)


@pytest.mark.parametrize("unattainable", ["refuse", "one-trial"])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("size", ["octave", "public", "paper", "none"])
def test_the_colours_agree_with_the_sentence(
    report: rp.AuditReport, tuner: Any, size: str, p: float, unattainable: str
) -> None:
    """A green tick never stands above a red number; the number after carries the verdict."""
    strict = 0.9 if p > 0.9 else 0.3
    policy = rp.Policy(p, 0.9, strict, sample_size=size, unattainable=unattainable)
    found = tuner.setting(policy)
    kind, _ = group_verdict(policy, found)
    html = str(verdict_card(report, policy, found))
    used = {tone for tone in TONES.values() if f'class="figure {tone}"' in html}
    assert used == {TONES[kind]}
    before = html[html.index("the raw table, if only perturbed") : html.index("what the release")]
    assert f"<dd>{found.violating_groups:,}</dd>" in before
    assert not any(tone in before for tone in TONES.values())


def test_all_kinds_of_verdict_are_among_them(tuner: Any) -> None:
    """Or the test above would not say much."""
    loose, strict = rp.Policy(0.1, 0.3, 0.1), rp.Policy(0.95, 0.9, 0.9)
    kept = replace(strict, unattainable="one-trial")
    kinds = {group_verdict(policy, tuner.setting(policy))[0] for policy in (loose, strict, kept)}
    assert kinds == {"good", "warning", "error"}


def first_notice(card: Tag) -> str:
    html = str(card)
    begin = html.index('class="notice')
    return html[begin : html.index("</p>", begin)]


def test_the_first_sentence_is_the_worst_of_the_three(
    report: rp.AuditReport, tuner: Any, tmp_path: Path
) -> None:
    """Groups that are safe do not come before people who can be found, nor those before an id."""
    assert report.single_records.unique > 0
    safe = first_notice(verdict_card(report, POLICY, tuner.setting(POLICY)))
    assert safe.startswith('class="notice warning"')
    assert "are unique on the public columns" in safe
    lost = rp.Policy(0.5, 0.5, 0.3, sample_size="none")
    assert "Without sampling" in first_notice(verdict_card(report, lost, tuner.setting(lost)))
    rows = range(3000)
    data = pa.table({"id": list(rows), "x": [str(i % 7) for i in rows]})
    with rp.read(data, sensitive="x", public="all") as table, pytest.warns(rp.ReconprivWarning):
        found = table.audit(POLICY, columns=False)
    assert found.private
    first = first_notice(plain_verdict(found, ""))
    assert "Not ready to publish" in first
    assert "--" not in first


def test_a_moved_slider_takes_what_a_record_tells_along(report: rp.AuditReport, tuner: Any) -> None:
    """The counts of an older audit are used with the current policy's probability."""
    policy = rp.Policy(0.8, 0.5, 0.3)
    html = str(verdict_card(report, policy, tuner.setting(policy)))
    assert f", at most {tuner.setting(policy).posterior:.1%}" in html


def test_the_table_without_each_column_is_shown(desk: Desk, settled: Settled) -> None:
    found = desk.audit_columns(settled, POLICY)
    html = str(columns_table(found))
    for column in found.columns:
        assert column.without is not None
        assert f"without {column.name}" in html
        assert f"{column.without.groups:,}" in html


def test_a_result_holds_for_its_own_table_and_policy_alone(settled: Settled) -> None:
    judged = Judged(settled, POLICY, "found")
    assert judged.holds_for(settled, rp.Policy(0.5, 0.5, 0.3))
    assert not judged.holds_for(settled, rp.Policy(0.51, 0.5, 0.3))
    assert not judged.holds_for(settled, rp.Policy(0.5, 0.5, 0.3, sample_size="paper"))
    assert not judged.holds_for(None, POLICY)
    other = Settled(settled.opened, settled.roles, settled.table)
    assert not judged.holds_for(other, POLICY)


def test_a_result_that_does_not_hold_is_greyed_and_busy() -> None:
    stale = str(shown(tags.p("private"), current=False))
    assert 'aria-busy="true"' in stale
    assert "Recomputing…" in stale
    assert "aria-busy" not in str(shown(tags.p("private"), current=True))


def test_groups_are_named_by_their_columns_and_the_value_behind_f(report: rp.AuditReport) -> None:
    html = str(details_cards(report))
    worst = report.worst[0]
    group = worst.public
    assert f"age={group['age']}, race={group['race']}, sex={group['sex']}" in html
    assert f"{worst.largest_frequency:.2f} ({worst.value})" in html


def wish(**values: float) -> Any:
    return target_of({**dict.fromkeys(WISHES), **values})


def test_every_target_says_where_the_policy_stands(tuner: Any) -> None:
    found = tuner.setting(POLICY)
    for name, met in (("max_error", found.error * 1.1), ("rho2", found.posterior + 0.01),
                      ("min_group_error", found.group_error * 0.9),
                      ("max_reconstructed", found.reconstructed * 1.1)):  # fmt: skip
        assert ">met<" in str(standing(name, wish(**{name: met}), found))
    for name, missed in (("max_error", found.error * 0.9), ("rho2", found.posterior - 0.01),
                         ("min_group_error", found.group_error * 1.1),
                         ("max_reconstructed", found.reconstructed * 0.9)):  # fmt: skip
        assert ">not met<" in str(standing(name, wish(**{name: missed}), found))
    assert "met<" not in str(standing("rho2", wish(), found))


def test_a_suggestion_says_what_it_changes(tuner: Any) -> None:
    mine, other = tuner.setting(POLICY), tuner.setting(rp.Policy(0.62, 0.5, 0.3))
    assert parameter_changes(mine, other) == ["p 0.50 → 0.62"]
    belief = f"A belief of 10 % can grow to {other.posterior:.0%} instead of {mine.posterior:.0%}."
    assert belief in effects(mine, other)
    assert weakens(mine, other)
    assert not weakens(other, mine)


def suggested(
    desk: Desk, settled: Settled, *, weaker: bool = False, **wishes: float
) -> tuple[Setting, Setting | None, str]:
    """The current setting, the suggested one, and the words on it."""
    asked = Asked(POLICY, wish(**wishes), weaker)
    report = try_settings(count_cells(desk, settled), asked).report
    assert report is not None
    return report.current, suggestion(report), str(advice(report, asked))


def test_no_suggestion_weakens_single_records_unless_that_is_allowed(
    desk: Desk, settled: Settled
) -> None:
    mine, best, words = suggested(desk, settled, max_error=0.05)
    assert best is not None
    assert not weakens(mine, best)
    assert "Tick the box" in words
    assert "Margins spend a budget of their own" in words
    # A limit above what the policy tells now is no leave to go there.
    mine, best, _ = suggested(desk, settled, max_error=0.3, rho2=0.95)
    assert best is not None
    assert not weakens(mine, best)
    mine, best, words = suggested(desk, settled, max_error=0.05, weaker=True)
    assert best is not None
    assert weakens(mine, best)
    assert "protects single records less" in words
    assert f"can grow to {best.posterior:.0%} instead of {mine.posterior:.0%}" in words


def test_the_dials_keep_a_limit_that_the_suggestion_keeps(
    desk: Desk, settled: Settled, tuner: Any
) -> None:
    _, best, _ = suggested(desk, settled, rho2=0.5)
    assert best is not None
    dials = dials_of(best)
    set_to = tuner.setting(
        rp.Policy(dials["p"], dials["e"], dials["d"], margins=dials["m"] or None)
    )
    assert set_to.posterior <= 0.5
    assert not parameter_changes(set_to, best)


@pytest.mark.parametrize("epsilon", [0.3, 0.9])
@pytest.mark.parametrize(
    "wishes", [{"max_reconstructed": 0.6}, {"rho2": 0.35}, {"max_error": 0.3, "rho2": 0.55}]
)
def test_a_suggestion_keeps_its_promise_once_it_is_taken(
    desk: Desk, settled: Settled, tuner: Any, epsilon: float, wishes: dict[str, float]
) -> None:
    """The figures before the click are those after it, whatever the ε of either policy."""
    asked = Asked(replace(POLICY, epsilon=epsilon), wish(**wishes), weaker=False)
    report = try_settings(count_cells(desk, settled), asked).report
    assert report is not None
    best = suggestion(report)
    assert best is not None
    dials = dials_of(best)
    taken = rp.Policy(dials["p"], dials["e"], dials["d"], sample_size=best.sample_size,
                      bound=best.bound, margins=dials["m"] or None)  # fmt: skip
    found = tuner.setting(taken)
    shown_after = effects(best, found)
    assert all(line.endswith(", as now.") for line in shown_after)
    assert "estimated within ±50% from their own records" in shown_after[-1]
    for name in wishes:
        now = str(standing(name, asked.target, found))
        assert now == str(standing(name, asked.target, best))
        assert (">met<" in now) == (report.recommended is not None)
    again = try_settings(count_cells(desk, settled), replace(asked, policy=taken)).report
    assert again is not None
    assert again.current.reconstructed == found.reconstructed


def test_the_verdict_shows_what_neighbouring_groups_add(
    report: rp.AuditReport, settled: Settled, tuner: Any
) -> None:
    """The figure that tune has, beside that of the groups' own records."""
    judged = Judged(settled, POLICY, tuner.setting(POLICY))
    known = neighbours.measured(judged, tuner)
    found, measuring = neighbours.with_share(judged, known, tuner)
    assert not measuring
    assert found.pooled is not None
    assert found.pooled > found.reconstructed
    tuned = settled.table.tune(retentions=[0.5], epsilons=[0.5], deltas=[0.3], margins=[0],
                               current=POLICY, queries=50).current  # fmt: skip
    assert found.pooled == tuned.pooled
    words = "of the people, if the adversary also uses neighbouring groups"
    html = str(verdict_card(report, POLICY, found))
    assert f"<dt>{words}</dt>" in html
    assert f"<dd>{found.pooled:.1%}</dd>" in html
    assert f"<dd>{found.reconstructed:.1%}</dd>" in html
    # Before it is known, and where it would take too long.
    other = replace(POLICY, epsilon=0.9)
    fresh, measuring = neighbours.with_share(
        Judged(settled, other, tuner.setting(other)), known, tuner
    )
    assert measuring
    assert f"{words}: being measured" in str(verdict_card(report, other, fresh, measuring=True))
    assert f"{words}: not measured" in str(verdict_card(report, other, fresh))


def test_without_a_target_margins_are_offered_where_they_help(desk: Desk, settled: Settled) -> None:
    mine, best, words = suggested(desk, settled)
    assert best is not None
    assert parameter_changes(mine, best) == ["margins none → ε = 1"]
    assert "Margins would help: margins none → ε = 1." in words
    assert f"off by {best.error:.1%} instead of {mine.error:.1%}" in words
    assert "Margins spend a budget of their own: (ε = 1, δ = 1e-9)" in words
    assert dials_of(best)["m"] == 1.0


def test_the_picture_shows_both_frontiers(desk: Desk, settled: Settled) -> None:
    asked = Asked(POLICY, wish(), weaker=False)
    picture = try_settings(count_cells(desk, settled), asked)
    assert picture.report is not None
    assert picture.chart is not None
    more = [s for s in picture.report.efficient if s.margins is not None]
    drawn = str(picture.chart.picture())
    assert f"{len(more)} of these with margins" in drawn
    assert drawn.count("l4.5 8h-9z") == len(more) > 20


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.25, "3.2"), (-0.4, "-0.4"), (99.96, "100.0"), (1234.5, "1,234"), (17, "17")],
)
def test_small_counts_have_a_decimal(value: float, text: str) -> None:
    assert number(value) == text


def page_of(desk: Desk) -> Live:
    return make_live(desk, None)  # type: ignore[arg-type]


def test_a_page_learns_what_another_one_changed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    one, two = page_of(desk), page_of(desk)
    one.remember({"p": 0.5})  # the first values of a page are no change
    two.remember({"p": 0.5})
    assert one.changed_elsewhere() == two.changed_elsewhere() == ""
    one.remember({"p": 0.6})
    assert one.changed_elsewhere() == ""
    assert "settings" in two.changed_elsewhere()
    two.remember({"p": 0.7})  # a change of its own does not hide what it missed
    assert two.changed_elsewhere()
    assert one.changed_elsewhere()
    late = page_of(desk)
    assert late.changed_elsewhere() == ""
    desk.look("example:adult")
    late.touch()
    assert "example:adult" in two.changed_elsewhere()
    desk.close()
