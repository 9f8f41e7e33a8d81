"""Catalogue records of partners: Dublin Core, MABxml, MARCXML; Dublin Core is written and read again."""

from webdepot.exchange.metadata import dublin_core, mab, marc, markup
from webdepot.services.catalogue import records

TOKENS = (
    b"<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:dc='http://purl.org/dc/elements/1.1/'>",
    b"<dc:title>", b"</dc:title>", b"<dc:date>2020</dc:date>", b"<dc:language>ger</dc:language>",
    b"<dc:type>", b"<dc:identifier>urn:nbn:de:",
    b"<datensatz xmlns='http://www.ddb.de/professionell/mabxml/mabxml-1.xsd' typ='h'>",
    b"<feld nr='331' ind=' '>", b"<uf code='a'>", b"</feld>",
    b"<record xmlns='http://www.loc.gov/MARC21/slim'>", b"<leader>00000nam a2200000 c 4500</leader>",
    b"<controlfield tag='008'>", b"<datafield tag='245' ind1='1' ind2='0'>", b"<subfield code='a'>",
    b"</subfield></datafield>", b"<!DOCTYPE a>", b"&#1;", b"<?pi?>", b"<!-- -->",
)  # fmt: skip


def one_input(data: bytes) -> None:
    root = markup.parse(data, what="The record")
    record = dublin_core.from_element(root)
    dublin_core.to_fields(record)
    written = dublin_core.to_xml(record)
    assert dublin_core.to_xml(dublin_core.from_element(markup.parse(written, what="The copy"))) == written
    for fields in (mab.from_element(root), marc.from_element(root)[1]):
        records.valid_fields(fields)
