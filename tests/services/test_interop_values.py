"""Values in the forms that other programs expect: SolrWayback's addresses, revisits by warcit."""

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from warcio.warcwriter import WARCWriter

from small_warcs import write_warc
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.config import config
from webdepot.errors import ConfigError
from webdepot.services import pipeline
from webdepot.services.access.export import solr_address
from webdepot.services.access.replay import replay, replay_answer


@pytest.mark.parametrize(
    ("url", "normalised"),
    [
        ("http://www.museum-veldwijk.example/weblog.html", "http://museum-veldwijk.example/weblog.html"),
        ("https://WWW2.Example.org:443/A/B/?", "http://example.org/a/b"),
        ("https://example.org/", "http://example.org/"),
        ("http://example.org/%7Ejan/caf%C3%A9%20a%2Fb%25", "http://example.org/~jan/café%20a/b%25"),
        ("http://example.org/%FF", "http://example.org/%ff"),
    ],
)
def test_addresses_in_the_form_of_solrwayback(url: str, normalised: str):
    assert solr_address.normalised(url) == normalised


def test_tables_can_come_from_the_environment(tmp_path: Path):
    environment = {"WEBDEPOT_OIDC_ROLES": "web-curators=curator, staff=reader"}
    read = config.from_tree(tmp_path, {}, environment=environment, origin="x")
    assert read.oidc.roles == {"web-curators": "curator", "staff": "reader"}
    with pytest.raises(ConfigError):
        config.from_tree(tmp_path, {}, environment={"WEBDEPOT_OIDC_ROLES": "curator"}, origin="x")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an open file of warcio
def test_a_revisit_without_a_head_has_the_type_of_its_original(archive: Archive, tmp_path: Path):
    """As warcit writes them: a `resource`, and a revisit of it."""
    path = tmp_path / "warcit.warc.gz"
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        first = writer.create_warc_record(
            "http://x.example/a.html",
            "resource",
            payload=BytesIO(b"<title>A</title>"),
            warc_content_type="text/html",
            warc_headers_dict={"WARC-Date": "2020-01-01T00:00:00Z"},
        )
        writer.write_record(first)
        again = writer.create_revisit_record(
            "http://x.example/b.html",
            first.rec_headers["WARC-Payload-Digest"],
            "http://x.example/a.html",
            "2020-01-01T00:00:00Z",
            warc_headers_dict={"WARC-Date": "2020-01-01T00:00:00Z"},
        )
        writer.write_record(again)
    pipeline.import_files(archive, [path], collection="x")
    opened = replay.open_capture(
        archive, "http://x.example/b.html", "20200101000000", collection="x", reader=ANYONE
    )
    try:
        answer = replay_answer.for_client(opened, accept_encoding=None, byte_range=None)
        assert dict(answer.headers)["Content-Type"].startswith("text/html")
        assert answer.body.read() == b"<title>A</title>"
    finally:
        opened.close()


def test_of_two_addresses_with_one_key_the_exact_one_is_opened(archive: Archive, tmp_path: Path):
    pages = {"http://x.example/Case.HTML": b"upper", "http://x.example/case.html": b"lower"}
    path = write_warc(tmp_path / "case.warc.gz", pages, when=datetime(2020, 1, 1, tzinfo=UTC))
    pipeline.import_files(archive, [path], collection="x")
    for url, body in pages.items():
        opened = replay.open_capture(archive, url, "20200101000000", collection="x", reader=ANYONE)
        assert opened.payload.read() == body
        opened.close()
