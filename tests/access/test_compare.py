"""The comparison of two versions of a page."""

from hypothesis import given
from hypothesis import strategies as st

from webdepot.access.compare import MOST_LINES, LineKind, LinkedAddress, added_and_removed, of_lines, read

BASE = "http://a.org/dir/page.html"
lines = st.lists(st.sampled_from(["a", "b", "c d e", "c d f", "long line of words"]), max_size=30)


def test_a_page_is_taken_apart():
    page = b"""<title>T</title><base href="/other/"><h1>Head</h1><p>Some   words</p><script>var x</script>
    <a href="x.html">Link <b>bold</b></a><a href="x.html">again</a><a href="javascript:x">no</a>
    <img src="//b.org/p.png" alt=" A  clock ">"""
    taken = read(page, "text/html; charset=utf-8", BASE)
    assert taken.lines[:2] == ("Head", "Some words") and "var x" not in " ".join(taken.lines)
    assert taken.links == (LinkedAddress(url="http://a.org/other/x.html", words="Link bold"),)
    assert taken.pictures == (LinkedAddress(url="http://b.org/p.png", words="A clock"),)


def test_lines_of_menus_and_footers_are_apart():
    page = b"""<p><a href="/nl">Nederlands</a> | <a href="/en">English</a></p><a href="/">Home</a> <a href="/n">Our news</a>
    <nav><p>All of the collection</p></nav><h1>News</h1><p>Read <a href="/n">Our news</a></p><p>...</p>
    <footer><p>Weighing house 1</p></footer>"""
    taken = read(page, "text/html", BASE)
    assert taken.lines == ("News", "Read Our news", "...")
    assert taken.menu_lines == (
        "Nederlands | English",
        "Home Our news",
        "All of the collection",
        "Weighing house 1",
    )


def test_encodings_and_other_types():
    assert read("Käse".encode("latin-1"), "text/plain; charset=iso-8859-1", BASE).lines == ("Käse",)
    assert read(b"\x89PNG", "image/png", BASE).lines == ()
    assert read(b"x\n" * (MOST_LINES + 5), "text/plain", BASE).is_cut


def test_changed_words_inside_a_line_are_found():
    removed, added = of_lines(["Open from ten to four"], ["Open from ten to five"])
    assert [(piece.kind, piece.text) for piece in removed.pieces] == [
        (LineKind.SAME, "Open from ten to "),
        (LineKind.REMOVED, "four"),
    ]
    assert [(piece.kind, piece.text) for piece in added.pieces] == [
        (LineKind.SAME, "Open from ten to "),
        (LineKind.ADDED, "five"),
    ]


def test_what_is_far_from_a_change_is_left_out():
    same = [f"line {number}" for number in range(20)]
    found = of_lines(same, [*same[:10], "new", *same[10:]])
    assert [(line.kind, line.text) for line in found if line.kind is not LineKind.SAME] == [
        (LineKind.SKIPPED, "8"),
        (LineKind.ADDED, "new"),
        (LineKind.SKIPPED, "8"),
    ]


@given(lines, lines)
def test_both_versions_can_be_read_from_the_comparison(before, after):
    """Nothing is invented and nothing lost: the lines of either version are those shown and those counted as
    left out.
    """
    found = of_lines(before, after)
    if before == after:
        assert found == []
        return
    skipped = sum(int(line.text) for line in found if line.kind is LineKind.SKIPPED)
    for version, gone in ((before, LineKind.ADDED), (after, LineKind.REMOVED)):
        shown = [line.text for line in found if line.kind not in (gone, LineKind.SKIPPED)]
        assert len(shown) + skipped == len(version)
        assert all(text in version for text in shown)
    assert all("".join(piece.text for piece in line.pieces) in ("", line.text) for line in found)


@given(st.binary(max_size=3000))
def test_any_bytes_are_a_page(data):
    read(data, "text/html", BASE)


def test_links_that_were_added_and_removed():
    a, b, c = (LinkedAddress(url=f"http://a.org/{name}", words=name) for name in "abc")
    assert added_and_removed([a, b], [b, c]) == ([c], [a])
