"""METS of partners: UOF packages and the profile of the regional libraries, with LMER and MABxml inside."""

from webdepot.exchange import incoming, uof
from webdepot.exchange.metadata import markup, regbib

TOKENS = (
    b"<mets:mets xmlns:mets='http://www.loc.gov/METS/'>", b"<mets:amdSec>", b"<mets:techMD ID='TM1'>",
    b"<mets:mdWrap MDTYPE='OTHER'><mets:xmlData>", b"<mets:dmdSec ID='D1'>", b"<mets:fileSec><mets:fileGrp>",
    b"<mets:file ID='F1' SIZE='10' ADMID='TM1'>", b"<mets:FLocat xlink:href='file://./content/a.pdf'/>",
    b"<mets:structMap>", b"<mets:div TYPE='monograph' DMDID='D1'>", b"<mets:fptr FILEID='F1'/>", b"SIZE='",
    b"CREATED='2020-01-01'", b"CHECKSUMTYPE='MD5'", b"../", b"%2e%2e/", b"TYPE='CAPTURE'",
    b"CONTENTIDS='http://", b"<lmerObject:numberOfFiles>1<", b"<feld nr='552' ind='b'>",
    b"<datensatz id='1' typ='h'>", b"<!DOCTYPE a>", b"&lt;",
    b"xmlns='http://www.ddb.de/professionell/mabxml/mabxml-1.xsd'",
)  # fmt: skip


def one_input(data: bytes) -> None:
    root = markup.parse(data, what="The record")
    if not regbib.check(root):
        delivered = regbib.read(root)
        incoming.largest_bytes(delivered)
        _use(delivered)
    _use(uof.read(data))


def _use(delivered: regbib.DeliveredObject) -> None:
    incoming.wrong_digits(delivered)
    incoming.seeds_of(delivered)
    for file in delivered.files:
        incoming.member_of(file)
