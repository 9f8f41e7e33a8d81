"""Check the objects of a PDF that often cause problems for readers: catalog, page tree, boxes, fonts,
annotations, outlines, destinations, names, dates, labels, metadata (ISO 32000-1, 7.7, 12.3, 14.3). Every
traversal remembers the visited objects, since hostile files contain loops.
"""

import io
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream, String

from webdepot.formats.validation_result import Property
from webdepot.formats.validators.markup import check_xml_part

MOST_NODES = 50_000
MOST_PAGES_LOOKED_AT = 500
MOST_DEPTH = 100
_DATE = re.compile(
    r"(?:D:)?\d{4}(?:(0[1-9]|1[0-2])(?:(0[1-9]|[12]\d|3[01])(?:([01]\d|2[0-3])(?:[0-5]\d(?:[0-5]\d)?)?)?)?)?"
    r"(?:Z(?:00'?(?:00'?)?)?|[+-](?:[01]\d|2[0-3])'?(?:[0-5]\d'?)?)?"
)
_FITS = frozenset(("/XYZ", "/Fit", "/FitH", "/FitV", "/FitR", "/FitB", "/FitBH", "/FitBV"))
_MODES = frozenset(("/UseNone", "/UseOutlines", "/UseThumbs", "/FullScreen", "/UseOC", "/UseAttachments"))
_LAYOUTS = frozenset(
    ("/SinglePage", "/OneColumn", "/TwoColumnLeft", "/TwoColumnRight", "/TwoPageLeft", "/TwoPageRight")
)
_FONTS = frozenset(("/Type0", "/Type1", "/MMType1", "/Type3", "/TrueType", "/CIDFontType0", "/CIDFontType2"))
_KINDS = {
    "/Names": Dictionary, "/AcroForm": Dictionary, "/ViewerPreferences": Dictionary,
    "/StructTreeRoot": Dictionary, "/PageLabels": Dictionary, "/MarkInfo": Dictionary, "/Lang": String,
}  # fmt: skip
Problems = Iterator[str]


def iter_problems(pdf: pikepdf.Pdf, properties: dict[str, Property]) -> Problems:
    """All problems, as text; fills in `properties`."""
    yield from _trailer(pdf)
    root = pdf.trailer.get("/Root")
    if not isinstance(root, Dictionary):
        yield "it has no catalog"
        return
    yield from _catalog(root)
    pages: list[Any] = []
    yield from _page_tree(root, pages)
    properties["pages"] = len(pages)
    known = {page.objgen for page in pages}
    for page in pages[:MOST_PAGES_LOOKED_AT]:
        yield from _page(page, known)
    yield from _outlines(root, known)
    yield from _names(root, known)
    yield from _info(pdf, properties)
    yield from _metadata(root)


def _trailer(pdf: pikepdf.Pdf) -> Problems:
    if not isinstance(pdf.trailer.get("/Size"), int):
        yield "its trailer does not say how many objects it has"
    identifiers = pdf.trailer.get("/ID")
    if identifiers is not None and (
        not isinstance(identifiers, Array)
        or len(identifiers) != 2
        or not all(isinstance(each, String) for each in identifiers)
    ):
        yield "its identifier is not a pair of strings"
    info = pdf.trailer.get("/Info")
    if info is not None and not isinstance(info, Dictionary):
        yield "its Info entry is not a dictionary"


def _catalog(root: Dictionary) -> Problems:
    if root.get("/Type") != Name.Catalog:
        yield "its catalog does not have the type Catalog"
    version = root.get("/Version")
    if version is not None and not (
        isinstance(version, Name) and re.fullmatch(r"/(1\.[0-7]|2\.0)", str(version))
    ):
        yield f"its catalog names version {version}, which does not exist"
    for key, known in (("/PageMode", _MODES), ("/PageLayout", _LAYOUTS)):
        value = root.get(key)
        if value is not None and str(value) not in known:
            yield f"{key[1:]} {value} does not exist"
    for key, kind in _KINDS.items():
        value = root.get(key)
        if value is not None and not isinstance(value, kind):
            yield f"{key[1:]} of its catalog is of the wrong type"
    labels = root.get("/PageLabels")
    if isinstance(labels, Dictionary) and "/Nums" not in labels and "/Kids" not in labels:
        yield "its page labels have no numbers"
    form = root.get("/AcroForm")
    if isinstance(form, Dictionary) and not isinstance(form.get("/Fields"), Array) and "/XFA" not in form:
        yield "its form has no fields"


def _page_tree(root: Dictionary, pages: list[Any]) -> Problems:
    top = root.get("/Pages")
    if not isinstance(top, Dictionary):
        yield "its catalog names no pages"
        return
    yield from _branch(top, None, pages, set(), 0, {})


def _branch(
    node: Dictionary,
    parent: Dictionary | None,
    pages: list[Any],
    seen: set[tuple[int, int]],
    depth: int,
    attributes: dict[str, Any],
) -> Problems:
    if node.objgen in seen or depth > MOST_DEPTH:
        yield "its page tree contains a loop"
        return
    seen.add(node.objgen)
    if parent is not None and (
        not isinstance(node.get("/Parent"), Dictionary) or node["/Parent"].objgen != parent.objgen
    ):
        yield "a page does not name its parent in the page tree"
    inherited = attributes | {
        key: node[key] for key in ("/MediaBox", "/Resources", "/CropBox", "/Rotate") if key in node
    }
    kind = node.get("/Type")
    if kind == Name.Page or (kind is None and "/Kids" not in node):
        if kind is None:
            yield "a page has no type"
        yield from _inherited(inherited)
        pages.append(node)
        return
    if kind != Name.Pages:
        yield f"a node of the page tree is of type {kind}"
    kids = node.get("/Kids")
    if not isinstance(kids, Array):
        yield "a node of the page tree has no list of pages"
        return
    before = len(pages)
    for kid in kids:
        if len(seen) > MOST_NODES:
            return
        if isinstance(kid, Dictionary):
            yield from _branch(kid, node, pages, seen, depth + 1, inherited)
        else:
            yield "the page tree names something that is not a page"
    if node.get("/Count") != len(pages) - before:
        yield f"the page tree states {node.get('/Count')} pages, but has {len(pages) - before}"


def _inherited(attributes: dict[str, Any]) -> Problems:
    box = attributes.get("/MediaBox")
    if box is None:
        yield "a page has no size"
    elif not _is_box(box):
        yield "the size of a page is not a rectangle"
    if "/CropBox" in attributes and not _is_box(attributes["/CropBox"]):
        yield "the crop box of a page is not a rectangle"
    rotation = attributes.get("/Rotate", 0)
    if not isinstance(rotation, int) or rotation % 90:
        yield f"a page is rotated by {rotation} degrees"
    if not isinstance(attributes.get("/Resources", Dictionary()), Dictionary):
        yield "the resources of a page are not a dictionary"


def _is_box(box: Any) -> bool:
    if (
        not isinstance(box, Array)
        or len(box) != 4
        or not all(isinstance(each, (int, Decimal, float)) for each in box)
    ):
        return False
    left, bottom, right, top = (float(each) for each in box)
    return left != right and bottom != top


def _page(page: Dictionary, known: set[tuple[int, int]]) -> Problems:
    contents = page.get("/Contents")
    if contents is not None and not isinstance(contents, (Stream, Array)):
        yield "the content of a page is not a stream"
    elif isinstance(contents, Array) and not all(isinstance(each, Stream) for each in contents):
        yield "a part of the content of a page is not a stream"
    resources = page.get("/Resources")
    if isinstance(resources, Dictionary):
        yield from _resources(resources)
    annotations = page.get("/Annots")
    if annotations is None:
        return
    if not isinstance(annotations, Array):
        yield "the annotations of a page are not a list"
        return
    for each in annotations:
        yield from _annotation(each, known)


def _resources(resources: Dictionary) -> Problems:
    for key, kinds in (("/Font", (Dictionary,)), ("/XObject", (Stream,))):
        named = resources.get(key)
        if named is None:
            continue
        if not isinstance(named, Dictionary):
            yield f"{key[1:]} in the resources of a page is not a dictionary"
            continue
        for name in list(named.keys())[:200]:
            each = named.get(name)
            if each is None or not isinstance(each, kinds):
                yield f"{key[1:]} {name} of a page does not exist"
            elif key == "/Font":
                yield from _font(each, name)
            elif str(each.get("/Subtype")) not in ("/Image", "/Form", "/PS"):
                yield f"XObject {name} of a page is of an unknown kind"


def _font(font: Any, name: str) -> Problems:
    if font.get("/Type") != Name.Font:
        yield f"font {name} does not have the type Font"
    if str(font.get("/Subtype")) not in _FONTS:
        yield f"font {name} is of an unknown kind"
    elif str(font.get("/Subtype")) in ("/Type1", "/TrueType") and not isinstance(font.get("/BaseFont"), Name):
        yield f"font {name} has no name"


def _annotation(each: Any, known: set[tuple[int, int]]) -> Problems:
    if not isinstance(each, Dictionary):
        yield "an annotation is not a dictionary"
        return
    if not isinstance(each.get("/Subtype"), Name):
        yield "an annotation has no type"
    rectangle = each.get("/Rect")
    if (
        not isinstance(rectangle, Array)
        or len(rectangle) != 4
        or not all(isinstance(number, (int, Decimal, float)) for number in rectangle)
    ):
        yield "an annotation has no rectangle"
    if "/Dest" in each:
        yield from _destination(each["/Dest"], known)
    yield from _action(each.get("/A"), known)


def _action(action: Any, known: set[tuple[int, int]]) -> Problems:
    if action is None:
        return
    if not isinstance(action, Dictionary) or not isinstance(action.get("/S"), Name):
        yield "an action has no type"
    elif action["/S"] == Name.GoTo:
        if "/D" not in action:
            yield "an action has no destination"
        else:
            yield from _destination(action["/D"], known)


def _destination(place: Any, known: set[tuple[int, int]]) -> Problems:
    if isinstance(place, Dictionary) and "/D" in place:
        place = place["/D"]
    if isinstance(place, (String, Name)):
        return
    if not isinstance(place, Array) or not len(place):
        yield "a destination is of the wrong type"
        return
    page = place[0]
    if isinstance(page, Dictionary):
        if page.objgen not in known:
            yield "a destination leads to a page that does not exist"
    elif not isinstance(page, int):
        yield "a destination leads to a page that does not exist"
    if len(place) < 2 or str(place[1]) not in _FITS:
        yield "a destination does not say how to show its page"


def _outlines(root: Dictionary, known: set[tuple[int, int]]) -> Problems:
    top = root.get("/Outlines")
    if top is None:
        return
    if not isinstance(top, Dictionary):
        yield "its outline is not a dictionary"
        return
    seen: set[tuple[int, int]] = {top.objgen}
    waiting = [top]
    while waiting:
        parent = waiting.pop()
        item, last = parent.get("/First"), None
        if (item is None) != (parent.get("/Last") is None):
            yield "a level of its outline has no first or no last entry"
        while item is not None:
            if not isinstance(item, Dictionary):
                yield "an entry of its outline is not a dictionary"
                return
            if item.objgen in seen or len(seen) > MOST_NODES:
                yield "its outline contains a loop"
                return
            seen.add(item.objgen)
            yield from _outline_item(item, parent, last, known)
            if "/First" in item:
                waiting.append(item)
            last, item = item, item.get("/Next")
        if (
            last is not None
            and isinstance(parent.get("/Last"), Dictionary)
            and parent["/Last"].objgen != last.objgen
        ):
            yield "a level of its outline does not end with its last entry"


def _outline_item(
    item: Dictionary, parent: Dictionary, last: Dictionary | None, known: set[tuple[int, int]]
) -> Problems:
    if not isinstance(item.get("/Title"), String):
        yield "an entry of its outline has no title"
    if not isinstance(item.get("/Parent"), Dictionary) or item["/Parent"].objgen != parent.objgen:
        yield "an entry of its outline does not name its parent"
    before = item.get("/Prev")
    if last is not None and (not isinstance(before, Dictionary) or before.objgen != last.objgen):
        yield "an entry of its outline does not name the entry before it"
    if "/Count" in item and not isinstance(item["/Count"], int):
        yield "an entry of its outline has a wrong count"
    if "/Dest" in item:
        yield from _destination(item["/Dest"], known)
    yield from _action(item.get("/A"), known)


def _names(root: Dictionary, known: set[tuple[int, int]]) -> Problems:
    opening = root.get("/OpenAction")
    if isinstance(opening, Array):
        yield from _destination(opening, known)
    elif opening is not None:
        yield from _action(opening, known)
    old = root.get("/Dests")
    if isinstance(old, Dictionary):
        for name in list(old.keys())[:MOST_NODES]:
            yield from _destination(old.get(name), known)
    names = root.get("/Names")
    tree = names.get("/Dests") if isinstance(names, Dictionary) else None
    if tree is not None:
        yield from _name_tree(tree, lambda value: _destination(value, known))


def _name_tree(top: Any, check: Callable[[Any], Problems]) -> Problems:
    seen: set[tuple[int, int]] = set()
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Dictionary):
            yield "a name tree has a node that is not a dictionary"
            continue
        if node.objgen != (0, 0) and node.objgen in seen:
            yield "a name tree contains a loop"
            return
        seen.add(node.objgen)
        if len(seen) > MOST_NODES:
            return
        if isinstance(node.get("/Kids"), Array):
            waiting.extend(node["/Kids"])
        pairs = node.get("/Names")
        if isinstance(pairs, Array):
            if len(pairs) % 2:
                yield "a name tree has a name without a value"
            for value in list(pairs)[1 : 2 * MOST_PAGES_LOOKED_AT : 2]:
                yield from check(value)


def _info(pdf: pikepdf.Pdf, properties: dict[str, Property]) -> Problems:
    info = pdf.trailer.get("/Info")
    if not isinstance(info, Dictionary):
        return
    for key in ("/CreationDate", "/ModDate"):
        value = info.get(key)
        if value is not None and not (isinstance(value, String) and _DATE.fullmatch(str(value).strip("\0 "))):
            yield f"its {key[1:]} is not a date: {str(value)[:40]}"
    for key in ("/Title", "/Author", "/Subject", "/Keywords", "/Creator", "/Producer"):
        value = info.get(key)
        if value is not None and not isinstance(value, String):
            yield f"its {key[1:]} is not text"
        elif value is not None and key in ("/Title", "/Producer", "/Creator"):
            properties[key[1:].lower()] = str(value)[:200]


def _metadata(root: Dictionary) -> Problems:
    metadata = root.get("/Metadata")
    if metadata is None:
        return
    if not isinstance(metadata, Stream):
        yield "its metadata are not a stream"
        return
    try:
        data = bytes(metadata.read_bytes())
    except pikepdf.PdfError:
        return  # qpdf reports streams that it cannot unpack
    if wrong := check_xml_part(io.BytesIO(data.strip(b"\0 \r\n\t"))):
        yield f"its metadata are not well-formed XML ({wrong})"
