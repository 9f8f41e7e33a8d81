"""Pages read to find the owner of a site: imprint, structured data, mail addresses; and TLS certificates."""

from io import BytesIO

from webdepot.container.http import HttpHead
from webdepot.selection.domains import page_facts
from webdepot.selection.domains.lookup import certificate

TOKENS = (
    b"<title>", b"<h1>Impressum</h1>", b"<a href='/impressum'>", b"<script type='application/ld+json'>",
    b'{"@type": "Organization", "name": "', b'"parentOrganization": ', b'"vatID": "DE123456789"',
    b'"sameAs": ', b"</script>", b"Angaben gem\xc3\xa4\xc3\x9f \xc2\xa7 5 TMG\n", b"USt-IdNr.: DE123456789",
    b"info (at) a (dot) example", b"\xc2\xa9 2020 ", b"Copyright ", b"GmbH", b"e.V.", b"Stichting ", b"<br>",
    b"UA-12345-1", b"<meta http-equiv=refresh content='0; url=", b"(", b")", b"<", b"\n", b"Kvk: 12345678",
    b"0\x82\x01\x0a", b"Verantwortlich: ",
)  # fmt: skip


def one_input(data: bytes) -> None:
    head = HttpHead(version="HTTP/1.1", status=200, reason="", headers=(("Content-Type", "text/html"),))
    for as_imprint in (False, True):
        page_facts.read("http://a.example/", head, BytesIO(data), as_imprint=as_imprint)
    certificate.read(data, is_trusted=False)
