"""The beans of a Heritrix job (`crawler-beans.cxml`, Spring XML), as plain values.

Only what jobs use is read: beans with properties that have a value, a list, a map, or a bean. Values that a
`PropertyOverrideConfigurer` sets at the top of the file are put into their beans. Nothing is executed, no
entity is expanded, nothing outside the file is read.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from webdepot.errors import InputError
from webdepot.text import untrusted_xml

LONGEST_BYTES = 4 << 20
_MOST_ELEMENTS = 20_000
_OVERRIDE = "PropertyOverrideConfigurer"
_STEP = re.compile(r"([A-Za-z_][\w-]*)((?:\[\d{1,4}\])*)\Z")


@dataclass(slots=True, kw_only=True)
class Bean:
    name: str
    kind: str
    """The class without its package."""
    properties: dict[str, Any] = field(default_factory=dict)
    """Text, a list, a table of texts, or a `Bean`."""


def read(raw: bytes) -> list[Bean]:
    """The beans of a file, in order, with overrides applied; InputError if it is not such a file."""
    if len(raw) > LONGEST_BYTES:
        raise InputError(f"The file is larger than {LONGEST_BYTES >> 20} MB, too large for a job.")
    if b"<!ENTITY" in raw:
        raise InputError("The file declares entities, which no job needs. Remove them.")
    try:
        root = untrusted_xml.parse_elements(raw)
    except ValueError as error:
        raise InputError(f"The file is not well-formed XML: {error}.") from error
    if etree.QName(root).localname != "beans":
        raise InputError("The file is not a job of Heritrix 3: its root element is not <beans>.")
    if sum(1 for _ in root.iter()) > _MOST_ELEMENTS:
        raise InputError(f"The file has more than {_MOST_ELEMENTS:,} elements, too many for a job.")
    beans = [_bean(element) for element in root if _local(element) == "bean"]
    by_name = {bean.name: bean for bean in beans if bean.name}
    for bean in beans:
        if bean.kind == _OVERRIDE:
            for path, value in _overrides(bean):
                _put(by_name, path, value)
    return [bean for bean in beans if bean.kind != _OVERRIDE]


def _local(element: etree._Element) -> str:
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def _bean(element: etree._Element) -> Bean:
    bean = Bean(
        name=element.get("id") or element.get("name") or "",
        kind=(element.get("class") or "").rpartition(".")[2],
    )
    for child in element:
        name = child.get("name")
        if _local(child) == "property" and name:
            stated = child.get("value")
            bean.properties[name] = stated.strip() if stated is not None else _first(child)
    return bean


def _first(element: etree._Element) -> Any:
    """The value of the first child that has one; text without children is a value itself."""
    for child in element:
        return _value(child)
    return (element.text or "").strip()


def _value(element: etree._Element) -> Any:
    match _local(element):
        case "bean":
            return _bean(element)
        case "list" | "set":
            return [_value(child) for child in element]
        case "map":
            return {child.get("key", ""): _entry(child) for child in element if _local(child) == "entry"}
        case "props":
            return {child.get("key", ""): "".join(child.itertext()).strip() for child in element}
        case "ref":
            return Bean(name=element.get("bean", ""), kind="ref")
        case _:
            return "".join(element.itertext()).strip()


def _entry(element: etree._Element) -> Any:
    stated = element.get("value")
    return stated if stated is not None else _first(element)


def _overrides(bean: Bean) -> list[tuple[str, str]]:
    values = bean.properties.get("properties")
    if isinstance(values, dict):
        return [(name, value) for name, value in values.items() if isinstance(value, str)]
    lines = values.splitlines() if isinstance(values, str) else []
    pairs = [line.strip().partition("=") for line in lines if line.strip() and line.strip()[0] not in "#!"]
    return [(name.strip(), value.strip()) for name, equals, value in pairs if equals]


def _put(beans: dict[str, Bean], path: str, value: str) -> None:
    """Set `bean.property.property[3].property`. A path that leads nowhere is ignored; Heritrix refuses it."""
    name, _, rest = path.partition(".")
    holder: Any = beans.get(name)
    steps = [_STEP.match(step) for step in rest.split(".")]
    for number, step in enumerate(steps):
        if step is None or not isinstance(holder, Bean):
            return
        if number == len(steps) - 1 and not step[2]:
            holder.properties[step[1]] = value
            return
        holder = holder.properties.get(step[1])
        for index in re.findall(r"\d+", step[2]):
            if not isinstance(holder, list) or int(index) >= len(holder):
                return
            holder = holder[int(index)]
