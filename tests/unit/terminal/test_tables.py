"""Tables at the width of a terminal."""

import pytest

from cuarl.terminal.tables import Table, as_list, fitted, plain

COLUMNS = ("part", "n", "success", "interval", "failed")
ROWS = [["all", "200", "98.0 %", "94.7–99.3", "0"], ["easy", "100", "97.0 %", "90.0–99.0", "0"]]
RESULTS = Table(COLUMNS, ROWS, frozenset(COLUMNS[1:]))


def test_what_fits_is_whole():
    assert fitted(RESULTS, RESULTS.width()) == fitted(RESULTS, 200)
    assert fitted(RESULTS, 200).table == RESULTS and not fitted(RESULTS, 200).same
    assert [len(line) for line in plain(RESULTS)] == [RESULTS.width()] * 3


def test_what_is_the_same_in_all_rows_goes_beneath_the_last_column_first():
    table = Table((*COLUMNS, "side"), [[*row, "1"] for row in ROWS], RESULTS.numeric | {"side"})
    found = fitted(table, table.width() - 1)
    assert found.same == ["side 1"] and found.table.columns == COLUMNS
    found = fitted(table, table.width() - 8)
    assert found.same == ["failed 0", "side 1"] and found.table.columns == COLUMNS[:-1] and not found.is_list


def test_a_single_row_loses_only_what_is_nothing():
    one = Table(COLUMNS, ROWS[:1], RESULTS.numeric)
    found = fitted(one, one.width() - 1)
    assert found.same == ["failed 0"] and found.table.columns == COLUMNS[:-1]
    assert fitted(one, 20).is_list and fitted(one, 20).table.columns == COLUMNS[:-1]


def test_text_folds_before_numbers_and_ids_last():
    table = Table(
        ("id", "goal", "n"), [["0193f2b7-6c1e", "open the settings", "12345"], ["b", "c", "2"]], frozenset("n")
    )
    assert table.least_width() == 13 + 2 + 8 + 2 + 5
    assert fitted(table, 30).table.whole and not fitted(table, 30).is_list
    assert not fitted(table, 29).table.whole and not fitted(table, 29).is_list
    assert fitted(table, 20).is_list


def test_row_by_row_every_cell_has_its_name():
    assert as_list(Table(("a", "bb", "c"), [["x", "1", "2"], ["y", "3", "4"]])) == [
        "x\n  bb  1\n  c   2",
        "y\n  bb  3\n  c   4",
    ]


@pytest.mark.parametrize("width", range(10, 90, 7))
def test_no_number_is_ever_left_out(width):
    found = fitted(RESULTS, width)
    told = "\n".join([*plain(found.table), *found.same])
    assert all(cell in told for row in ROWS for cell in row)
