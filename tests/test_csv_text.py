"""CSV is written in one place, and untrusted text never becomes a formula in it."""

import csv
import io
from pathlib import Path

import pytest

import webdepot
from webdepot.text import csv_text

HOSTILE = ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]


def test_nobody_writes_csv_elsewhere():
    own = Path(csv_text.__file__)
    source = {path: path.read_text(encoding="utf-8") for path in Path(webdepot.__file__).parent.rglob("*.py")}
    assert [
        path
        for path, text in source.items()
        if path != own and ("csv.writer" in text or "csv.DictWriter" in text)
    ] == []


@pytest.mark.parametrize("cell", HOSTILE)
def test_a_cell_and_a_head_are_guarded_and_come_back(cell: str):
    text = "".join(csv_text.lines([cell, "b"], [{cell: cell, "b": -1.5}]))
    head, row = csv.reader(io.StringIO(text, newline=""))
    assert head == [f"'{cell}", "b"] and row == [f"'{cell}", "-1.5"]
    assert csv_text.read_cell(row[0]) == cell
