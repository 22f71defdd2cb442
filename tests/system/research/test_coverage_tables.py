"""The tables of docs/coverage.md: what they promise, and that a new run gives the same figures."""

from collections import defaultdict

import pytest

import coverage_tables as tables

LEAST, MOST = 0.93, 0.975


@pytest.fixture(scope="module")
def rows():
    return tables.read_rows()


def test_every_table_sample_size_and_p_was_measured(rows):
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
