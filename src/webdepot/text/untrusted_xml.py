"""XML that other people wrote: parsed without network access, without other files, and without the entities
that it declares. lxml is loaded when the first document is parsed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml import etree


def parser(**options: Any) -> "etree.XMLParser":
    """A parser of lxml with further options, such as `recover`."""
    from lxml import etree

    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, **options
    )


def parse(data: bytes, **options: Any) -> "etree._Element | None":
    """The root; None if `recover` finds no element. XMLSyntaxError or ValueError if the document
    cannot be parsed.
    """
    from lxml import etree

    root: etree._Element | None = etree.fromstring(data, parser(**options))
    return root


def parse_elements(data: bytes) -> "etree._Element":
    """The root without comments and processing instructions; ValueError if the document cannot be parsed."""
    from lxml import etree

    try:
        root = parse(data, remove_comments=True, remove_pis=True)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error
    if root is None:
        raise ValueError("it has no element")
    return root
