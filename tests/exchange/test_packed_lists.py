"""Lists of objects that are uploaded, or packed in a ZIP file, together with their files."""

import zipfile

import pytest
from object_samples import JATS, PAGE, folder_of

from webdepot.errors import InputError
from webdepot.exchange.catalogue import RecordLevel
from webdepot.services.catalogue import records
from webdepot.services.intake import submissions, uploads
from webdepot.services.progress import unwatched

HEADER = "filename,title,type,journal,issn,volume,issue\n"
THESIS = "thesis.html,Pendulum clocks,doctoralThesis,,,,\n"
ARTICLE = "verge.xml,On the verge,article,Horology,1234-5679,12,3\n"


def upload(archive, tmp_path, files):
    """What an upload of these files gives."""
    folder = folder_of(tmp_path / "chosen", files)
    place = uploads.keep_received(archive, sorted(folder.iterdir()))
    return list(uploads.take_object(archive, place, collection="theses", watch=unwatched))


def levels_of(archive, done):
    return [records.get(archive, each.package.urn).level for each in done]


def test_files_that_are_uploaded_with_a_list_are_one_object_for_each_line(archive, tmp_path):
    files = {"list.csv": HEADER + THESIS + ARTICLE, "thesis.html": PAGE, "verge.xml": JATS}
    done = upload(archive, tmp_path, files)
    assert levels_of(archive, done) == [RecordLevel.THESIS, RecordLevel.ARTICLE]


def test_a_list_in_a_zip_file_names_files_in_its_folders(archive, tmp_path):
    path = tmp_path / "papers.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("papers/list.csv", HEADER + "1/" + THESIS + "2/" + ARTICLE)
        packed.writestr("papers/1/thesis.html", PAGE)
        packed.writestr("papers/2/verge.xml", JATS)
    done = list(submissions.receive_each(archive, path, collection="theses"))
    assert levels_of(archive, done) == [RecordLevel.THESIS, RecordLevel.ARTICLE]
    again = submissions.receive_each(archive, path, collection="theses")
    assert [each.is_known for each in again] == [True, True]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (THESIS, "list.csv does not list notes.txt, verge.xml. Add a line"),
        (THESIS + ARTICLE.replace("verge", "absent"), "list.csv, line 3: there is no file absent.xml"),
    ],
)
def test_an_uploaded_list_that_is_not_complete_is_refused_whole(archive, tmp_path, rows, words):
    files = {"list.csv": HEADER + rows, "thesis.html": PAGE, "verge.xml": JATS, "notes.txt": "x"}
    with pytest.raises(InputError, match=words):
        upload(archive, tmp_path, files)
    assert records.list_records(archive) == []


def test_a_table_about_other_files_is_a_file_of_the_object(archive, tmp_path):
    done = upload(archive, tmp_path, {"table.csv": HEADER + THESIS, "verge.xml": JATS})
    assert levels_of(archive, done) == [RecordLevel.ARTICLE]
