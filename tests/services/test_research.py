"""What the documentation shows to programmers works: the examples in Python, and the notebook."""

import json
import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot
import pytest
from museum import EDITIONS, SITE, Warc, make_home

ROOT = Path(__file__).resolve().parent.parent.parent / "docs" / "how-to"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", (ROOT / "use-from-python.md").read_text(), re.M | re.S)
PRINTED = (
    ["1 pages", "20120601120000 http://www.example.org/ Clocks 2012"],
    ["20090312101500 200 text/html sha1:", "bytes of 20090312101500"],
    ["museum.example.org new - ", "theatre.example.org new - "],
    ["finished 0 findings"],
    ["2 links"],
)
"""What each example prints, among other things."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("research")
    warc = Warc(folder / "research.warc.gz")
    for stamp in EDITIONS[:2]:
        link = "<a href='http://towers.example.net/big'>Towers</a>"
        page = f"<title>Clocks {stamp[:4]}</title><p>A clock of {stamp[:4]}. {link}"
        warc.response(f"{SITE}/", stamp, page.encode())
    return make_home(folder / "home", warc.write())


def test_there_are_five_examples():
    assert len(EXAMPLES) == len(PRINTED) == 5


@pytest.mark.parametrize("number", range(5))
def test_an_example_runs(home: Path, number: int, capsys: pytest.CaptureFixture[str]):
    code = EXAMPLES[number]
    assert code.count('"/srv/webarchive"') == 1
    exec(compile(code.replace('"/srv/webarchive"', repr(str(home))), f"example {number}", "exec"), {})
    printed = capsys.readouterr().out
    for words in PRINTED[number]:
        assert words in printed


def test_the_notebook_runs_on_an_archive(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its code cells one after the other, as Jupyter runs them; plots are drawn but not shown."""
    monkeypatch.setenv("WEBDEPOT_HOME", str(home))
    monkeypatch.setenv("WEBDEPOT_WORDS", "clock missing")
    matplotlib.use("Agg")
    drawn = []
    monkeypatch.setattr(matplotlib.pyplot, "show", lambda: drawn.append(matplotlib.pyplot.gca().get_title()))
    notebook = json.loads((ROOT / "analyse-an-archive.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    try:
        for cell in notebook["cells"]:
            assert cell["cell_type"] == "markdown" or not cell["outputs"], "clear the outputs"
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), "notebook", "exec"), names)
    finally:
        matplotlib.pyplot.close("all")
    assert drawn == [
        "Captures by year", "Formats over time", "Sites that others link to", "Words over time",
    ]  # fmt: skip
    assert names["captures_by_year"] == {2009: 1, 2012: 1}
    assert names["links"] == {("example.org", "example.net"): 2}
    assert names["formats"]["text/html"] == {2009: 1, 2012: 1}
    assert names["shares"]["clock"] == {2009: 1.0, 2012: 1.0}
    assert set(names["shares"]["missing"].values()) == {0.0}
    assert "domains: 1 rows" in capsys.readouterr().out
