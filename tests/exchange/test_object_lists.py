"""CSV lists of objects: each line becomes an object, or nothing is taken in."""

import re

import pytest
from object_samples import JATS, NOTES, PAGE, delivered, folder_of, kept

from webdepot.errors import InputError
from webdepot.exchange.catalogue import RecordLevel
from webdepot.services.catalogue import records
from webdepot.services.intake import submissions

LIST = """filename,dc.title,dc.creator,dc.creator,dc.date,dc.type,journal,issn,volume,issue
a/thesis.html,Pendulum clocks,"Huygens, Christiaan","Coster, Salomon",2004,doctoralThesis,,,,
12-3/verge.xml|12-3/data|12-3/object.csv,On the verge,,,2004,article,Horology,1234-5679,12,3
"""


def test_a_list_of_objects(archive, tmp_path):
    folder = folder_of(
        tmp_path,
        {
            "a/thesis.html": PAGE,
            "12-3/verge.xml": JATS,
            "12-3/data/t.csv": b"t;x\n",
            "12-3/object.csv": b"its own table",
            "list.csv": LIST,
        },
    )
    done = list(submissions.receive_each(archive, folder / "list.csv", collection="theses"))
    thesis, article = (records.get(archive, each.package.urn) for each in done)
    assert (thesis.level, thesis.creators) == (RecordLevel.THESIS, ("Huygens, Christiaan", "Coster, Salomon"))
    assert delivered(archive, thesis.key) == {"thesis.html": PAGE}
    assert (article.level, records.get(archive, article.parent).part) == (RecordLevel.ARTICLE, "12 (2004), 3")
    assert delivered(archive, article.key) == {
        "verge.xml": JATS.encode(),
        "data/t.csv": b"t;x\n",
        "object.csv": b"its own table",
    }
    assert (folder / "12-3/object.csv").read_bytes() == b"its own table"  # files are linked, not copied
    assert b"On the verge,,,2004" in kept(archive, done[1].package.id)["metadata/submission/object.csv"]
    again = submissions.receive_each(archive, folder / "list.csv", collection="theses")
    assert [each.is_known for each in again] == [True, True]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("absent.pdf,Title", "list.csv, line 2: there is no file absent.pdf"),
        ("../secret,Title", "line 2: '../secret' is not a path below the folder of the list"),
        ("link.txt,Title", "line 2: link.txt is a symbolic link"),
        ("a.txt,", "line 2: there is no title"),
        (",Title", "line 2: there is no file"),
        ("a.txt,Title,more", "line 2: there are 3 values for 2 columns"),
        ('"a.txt,Title', "is not CSV in UTF-8"),
        ("", "list.csv lists no objects"),
    ],
)
def test_a_wrong_list_is_refused_before_its_first_object(archive, tmp_path, row, words):
    folder = folder_of(tmp_path / "in", {"a.txt": NOTES, "list.csv": f"filename,title\n{row}\n"})
    (folder / "link.txt").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=re.escape(words)):
        list(submissions.receive_each(archive, folder / "list.csv", collection="theses"))
    assert records.list_records(archive) == []
