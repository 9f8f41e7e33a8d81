"""The contract of `FormatIdentifier`, on the engine itself and behind its guard."""

import pytest

from webdepot.formats.examine import FileExaminer
from webdepot.formats.identify import SiegfriedIdentifier
from webdepot.model import Basis, FormatVerdict

GIF = b"GIF89a" + bytes(7) + b"\x3b"


@pytest.fixture(scope="module", params=[SiegfriedIdentifier, FileExaminer])
def identifier(request):
    with request.param() as opened:
        yield opened


def test_bytes_speak_first(identifier):
    found = identifier.identify(GIF, name="http://a.example/x.jpg", mime="image/jpeg")
    assert (found.puid, found.mime, found.basis, found.verdict) == (
        "fmt/4",
        "image/gif",
        Basis.SIGNATURE,
        FormatVerdict.RECOGNISED,
    )
    assert found.warning == "the server said image/jpeg"


def test_a_file_and_its_bytes_are_the_same(identifier, tmp_path):
    path = tmp_path / "whatever"
    path.write_bytes(GIF)
    assert identifier.identify(path, name="x.gif", mime="") == identifier.identify(GIF, name="x.gif", mime="")


def test_names_and_servers_help_where_bytes_are_silent(identifier):
    sheet = b"body { color: red }"
    assert identifier.identify(sheet, name="a.css", mime="").puid == "x-fmt/224"
    assert identifier.identify(sheet, name="a", mime="text/css").puid == "x-fmt/224"
    assert identifier.identify(sheet, name="a", mime="").verdict is FormatVerdict.UNCERTAIN


def test_nothing_is_said_of_nothing(identifier):
    assert identifier.identify(b"", name="a.png", mime="image/png").verdict is FormatVerdict.NOT_RECOGNISED


def test_a_file_too_large_for_memory_is_identified(identifier, tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(
            b"RIFF"
            + (300 << 20).to_bytes(4, "little")
            + b"WAVEfmt "
            + (16).to_bytes(4, "little")
            + b"\1\0\1\0"
            + bytes(12)
            + b"data"
        )
        file.truncate(300 << 20)
    assert identifier.identify(path, name="a.wav", mime="").mime == "audio/x-wav"


def test_the_engine_names_its_signatures(identifier):
    assert "siegfried" in identifier.engine
    assert "resolver" in identifier.engine
