"""Links in scripts: the addresses that the language itself loads (ECMAScript 13.3.10, 16.2; HTML, 8.1.5 and
10.2).

    import "./a.js"; import x from "./a.js"; export … from "./a.js"; import("./a.js")
    importScripts("a.js"), new Worker("a.js"), new SharedWorker("a.js"), new URL("a.wasm", import.meta.url)
    fetch("a.json"), request.open("GET", "a.json")                  of the same site only, and without a body

One regular expression as a tokenizer, not a parser: comments, strings and regular expressions are skipped, so
that an example in a text is not taken for an import. Only literals count, and the tables of files of webpack
(`chunks`); what else a script puts together is left to guesses (`data`) or to a browser.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from webdepot.harvest.links.chunks import chunk_addresses

_LITERAL = r"""(?:"([^"\\\n]*+)"|'([^'\\\n]*+)'|`([^`\\$]*+)`)"""
_COMMENT = r"/\*.*?(?:\*/|\Z)"
_REGEX = r"/(?![*/])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*+\]?)++/?"
# A token that has begun always ends, if only at the end of the text, and is not looked at again: the time is
# linear in the length.
_TOKEN = re.compile(
    rf"""//[^\n]*+|{_COMMENT}
    |(?<![\w$.])(?P<clause>(?:im|ex)port\b[\w$\s,*{{}}]*+)(?P<call>\(\s*+)?(?:{_COMMENT}\s*+)*+(?:{_LITERAL})?
    |(?<![\w$.])(?P<worker>new\s++(?:Shared)?Worker\s*+\(\s*+){_LITERAL}(?=\s*+[,)])
    |(?<![\w$.])(?P<url>new\s++URL\s*+\(\s*+){_LITERAL}\s*+,\s*+import\s*+\.\s*+meta\s*+\.\s*+url\b
    |(?P<data>(?<![\w$])fetch\s*+\(\s*+|\.open\s*+\(\s*+["']GET["']\s*+,\s*+){_LITERAL}(?:\s*+\)|(?P<more>\s*+,))
    |(?<![\w$])importScripts\s*+\((?P<scripts>[^()]*+)\)
    |"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|`(?:[^`\\]|\\.)*+`?
    |[(,=:\[!&|?;*%~^<>{{]\s*+{_REGEX}
    |\breturn\s*+{_REGEX}""",
    re.VERBOSE | re.DOTALL,
)
_LITERALS = [number for number in range(1, _TOKEN.groups + 1) if number not in _TOKEN.groupindex.values()]
_STRING = re.compile(_LITERAL)
_WORTH_READING = ("import", "export", "Worker", "fetch", ".open")
_ELSEWHERE = re.compile(r"[A-Za-z][\w+.-]*+:|//")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLinks:
    """Addresses as written, by what they are relative to."""

    of_script: list[str] = field(default_factory=list)
    """Modules and what a worker imports: relative to the script, which may be the page itself."""
    of_page: list[str] = field(default_factory=list)
    """Workers and data: relative to the page that runs the script."""


def references(script: str, modules: Mapping[str, str] | None = None) -> ScriptLinks:
    """The addresses that a script loads. `modules` are the names in the page's import map, for `import
    "vue"`.
    """
    of_script, of_page = chunk_addresses(script)
    links = ScriptLinks(of_script=of_script, of_page=of_page)
    if not any(word in script for word in _WORTH_READING):
        return links
    for token in _TOKEN.finditer(script):
        if token.lastindex is None:
            continue  # a comment, string or regular expression
        literal = next((token[number] for number in _LITERALS if token[number]), "")
        if token["clause"] is not None:
            words = token["clause"].split()
            is_import = words[-1] == "import" or (words[-1].endswith("from") and not token["call"])
            address = _module(literal, modules or {}) if literal and is_import else ""
            if address:
                links.of_script.append(address)
        elif token["data"] is not None:
            # With options, `fetch` may send something.
            is_read = token["more"] is None or token["data"].startswith(".")
            if literal and is_read and not _ELSEWHERE.match(literal):
                links.of_page.append(literal)
        elif token["worker"] is not None:
            links.of_page.append(literal)
        elif token["url"] is not None:
            links.of_script.append(literal)
        elif token["scripts"]:
            links.of_script.extend(filter(None, map("".join, _STRING.findall(token["scripts"]))))
    return links


def names_of(import_map: str) -> dict[str, str]:
    """The names of modules and folders in an import map (HTML, 8.1.6) with their addresses, as they are for
    the page itself; ValueError if it is not JSON.
    """
    return _addresses(_values(import_map).get("imports"))


def files_of(import_map: str) -> Iterator[str]:
    """All files in an import map; ValueError if it is not JSON."""
    values = _values(import_map)
    scopes = values.get("scopes")
    for table in (values.get("imports"), *(scopes.values() if isinstance(scopes, dict) else ())):
        yield from (address for address in _addresses(table).values() if not address.endswith("/"))


def _values(import_map: str) -> dict[str, object]:
    values = json.loads(import_map)
    return values if isinstance(values, dict) else {}


def _addresses(table: object) -> dict[str, str]:
    items = table.items() if isinstance(table, dict) else ()
    return {name: address for name, address in items if isinstance(address, str) and address}


def _module(name: str, modules: Mapping[str, str]) -> str:
    """The address of a module; empty for a name that is not in the import map."""
    if name in modules:
        return modules[name]
    folders = [folder for folder in modules if folder.endswith("/") and name.startswith(folder)]
    if folders:
        folder = max(folders, key=len)
        return modules[folder] + name.removeprefix(folder)
    return name if name.startswith(("./", "../", "/", "http://", "https://")) else ""
