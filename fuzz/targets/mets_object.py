"""METS with a list of files: E-ARK packages and METS of others. Each file begins with `--- PATH`."""

from fuzz.scratch import folder
from fuzz.submissions import lay_out, read_object

TOKENS = (
    b"--- METS.xml\n",
    b"--- representations/r1/METS.xml\n",
    b"--- representations/r1/data/a.txt\n",
    b"--- documentation/b.txt\n",
    b"--- metadata/descriptive/dc.xml\n",
    b"<mets xmlns='http://www.loc.gov/METS/' xmlns:xlink='http://www.w3.org/1999/xlink' ",
    b"PROFILE='https://earkcsip.dilcis.eu/profile/E-ARK-CSIP.xml' ",
    b"<metsHdr CREATEDATE='2020-01-01T00:00:00Z'>",
    b"<fileSec ID='s'><fileGrp ID='g' USE='Data'>",
    b"<file ID='f' SIZE='1' CREATED='2020-01-01T00:00:00Z' MIMETYPE='text/plain'>",
    b"<FLocat LOCTYPE='URL' xlink:type='simple' xlink:href='",
    b"../",
    b"%2e%2e%2f",
    b"file:///",
    b"CHECKSUM='' CHECKSUMTYPE='SHA-256'",
    b"<mdRef xlink:href='metadata/descriptive/dc.xml'/>",
    b"<structMap ID='m' TYPE='PHYSICAL' LABEL='CSIP'>",
    b"<div ID='d' LABEL='a'>",
    b"<fptr FILEID='f'/>",
    b"<mptr xlink:href='",
    b"</mets>",
)


def one_input(data: bytes) -> None:
    with folder() as place:
        (place / "object").mkdir()
        lay_out(data, place / "object")
        read_object(place / "object", place)
