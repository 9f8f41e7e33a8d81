"""The second engine of the text index works without the first."""

import subprocess
import sys
import textwrap

from test_search import FIRST, container, taken

from databases import configure
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.index.text.sqlite_index import SqliteTextIndex
from webdepot.services.access import search
from webdepot.services.index import indexer

WITHOUT_TANTIVY = """
    import sys
    from pathlib import Path

    sys.modules["tantivy"] = None  # as where it is not installed
    from webdepot.access.policy import ANYONE
    from webdepot.archive import Archive
    from webdepot.services.access import search
    from webdepot.services.index import indexer

    with Archive.open(Path(sys.argv[1]), agent="test") as archive:
        indexer.rebuild(archive)
        print([hit.url for hit in search.search(archive, "lighthouse", reader=ANYONE).hits])
"""


def test_an_archive_may_keep_its_words_in_sqlite_and_needs_no_other_engine(home, tmp_path):
    configure(home, '[index]\nworkers = 1\nengine = "sqlite"\n')
    with Archive.open(home, agent="test") as archive:
        taken(archive, container(tmp_path / "first.warc.gz", *FIRST), "one")
        assert isinstance(archive.texts, SqliteTextIndex)
        found = search.search(archive, "lighthouse", reader=ANYONE)
        assert found.pages
        assert [hit.url for hit in search.search(archive, "lighth*", reader=ANYONE).hits] == [
            hit.url for hit in found.hits
        ]
        assert indexer.status(archive).states == archive.texts.total()
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_TANTIVY), str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([hit.url for hit in found.hits])
