"""The tables of docs/coverage.md: what they promise, and that a new run gives the same figures."""

from collections import defaultdict

import pytest

import coverage_by_class as by_class
import coverage_tables as tables

LEAST, MOST = 0.93, 0.975


@pytest.fixture(scope="module")
def rows():
    return tables.read_rows()


def test_every_table_sampling_and_p_was_measured(rows):
    assert len({row[:3] for row in rows}) == 27
    assert {row[4] for row in rows} == {*tables.CLASSES, tables.COMMON, "any"}
    assert sum(row[6] for row in rows) > 10_000_000


def test_intervals_hold_in_every_class_of_count_and_group_size(rows):
    judged = [r for r in rows if r[3] != tables.TOGETHER and r[6] >= tables.ENOUGH]
    assert len(judged) > 500
    share, worst = tables.worst(judged)
    print(f"worst of {len(judged)} classes: {share:.1%} {worst}")
    assert share >= LEAST


def test_and_are_not_wider_than_need_be_for_common_answers(rows):
    for row in rows:
        # In the table of equal groups single groups are that common; they rest on a few trials.
        if row[4] == tables.COMMON and row[0] != "equal groups" and row[6] >= tables.ENOUGH:
            assert LEAST <= row[7] / row[6] <= MOST, row


def test_all_cells_of_a_table_hold_together(rows):
    designs = defaultdict(lambda: [0, 0])
    for row in rows:
        if row[3] == tables.TOGETHER:
            designs[row[1]][0] += row[6]
            designs[row[1]][1] += row[7]
    assert set(designs) == set(tables.SIZES)
    for cases, hits in designs.values():
        assert cases > 500
        assert hits / cases >= LEAST


@pytest.mark.parametrize(("size", "p"), [("none", 0.2), ("octave", 0.5), ("public", 0.8)])
def test_a_new_run_gives_the_same_figures_of_equal_groups(rows, size, p):
    design = ("equal groups", size, p)
    assert tables.measure(*design) == [row for row in rows if row[:3] == design]


def test_a_new_run_gives_the_same_figures_of_the_census_table(rows):
    design = ("Education", "octave", 0.5)
    assert tables.measure(*design) == [row for row in rows if row[:3] == design]


def test_the_page_shows_these_figures(rows):
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(rows)


FIGURES = {
    "count", "count of a set", "count of public columns", "share", "share of public columns",
    "share among holders", "average", "sum", "median", "quantile", "average of public columns",
    "average of the sensitive column", "sum of the sensitive column",
    "median of the sensitive column", "difference of shares", "difference of counts", "ratio",
}  # fmt: skip


def test_no_class_of_any_figure_covers_too_little_without_a_remark():
    found = by_class.read_rows()
    judged = [row for row in found if row[4] >= by_class.ENOUGH]
    assert {row[2] for row in judged} == FIGURES
    assert {"awkward, m = 2", "awkward, m = 14", "awkward, m = 200", "Adult"} <= {
        row[0] for row in judged
    }
    assert {row[0] for row in judged} <= set(by_class.TABLES)
    designs = {"none", "octave", "public", "paper", "signed", "strict", "octave, p = .2"}
    designs |= {"octave, p = .8", "octave, protected", "octave, margins"}
    assert designs <= {row[1] for row in judged} <= set(by_class.DESIGNS)
    assert len(judged) > 1_000
    assert not [row for row in judged if by_class.below(row, 8)]
    # What says that it is approximate is the one sampling rule whose trials are secret.
    assert {row[1] for row in judged if row[8] > row[5]} <= {"paper"}, "a warning elsewhere"


def test_a_class_that_covers_too_little_is_noticed():
    row = ("made", "none", "count", "all", 400, 350, 25, 25, 350)
    assert by_class.below(row) and by_class.below(row, 8)
    assert not by_class.below((*row[:5], 364, 18, 18, 364))


def test_a_new_run_asks_about_the_same_classes():
    asked = {row[2:4] for row in by_class.read_rows() if row[:2] == ("awkward, m = 14", "octave")}
    found = by_class.measure("awkward, m = 14", "octave", range(1))
    assert {row[2:4] for row in found} == asked
    assert sum(row[5] for row in found) > 0.9 * sum(row[4] for row in found)
