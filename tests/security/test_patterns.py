"""Every regular expression of the program takes time that is linear in the length of its input.

The patterns are found by importing all modules and by reading the syntax tree: compiled ones among the
globals, literals in calls of `re`. Those that are put together while the program runs are listed here with
examples, and a new one fails the test until it is listed.
"""

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

import webdepot

SOURCE = Path(webdepot.__file__).parent
METHODS = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
BUDGET_S = 10
"""Processor time for one pattern with all its inputs; a good one takes a fraction of a second."""
ALL_METHODS = ("search", "match", "findall")

BOUNDED: dict[str, tuple[int, str]] = {
    "webdepot.exchange.metadata.mab:_RUN": (100, "LONGEST_RUN"),
    "webdepot.harvest.links.data:_FILE": (2083, "could_be_address, _QUOTED"),
    "webdepot.quality.false_pages:_MISSING": (2000, "LONGEST_TEXT"),
    "webdepot.selection.domains.imprint:_OTHER": (400, "_LONGEST_LINE"),
    "webdepot.selection.domains.imprint:_LEGAL_END": (400, "_LONGEST_LINE"),
    "webdepot.selection.domains.imprint:_TAIL": (400, "_LONGEST_LINE"),
}
"""Patterns that are not linear, with the longest input that they get, and what ensures it."""
PUT_TOGETHER: dict[str, tuple[str, str]] = {
    "webdepot.container.writer:_next_number": ("match", r"H\-1-([0-9]+)\.warc\.gz(?:\.open)?\Z"),
    "webdepot.formats.validators.html_tags:_iter_errors": (
        "search",
        r"(?i)</script(?=[\s/>])[^>]*+(?:>|\Z)",
    ),
    "webdepot.index.text.snippets:_beginning": ("finditer", r"\b(?:archi|web)[^\W_]*"),
    "webdepot.index.text.snippets:_pattern": (
        "finditer",
        r"(?i)(?<![^\W_])(?:(a[\W_]+b)|(web[\W_]+archi))(?![^\W_])",
    ),
    "webdepot.index.text.snippets:_rest_of_phrase": ("match", r"[\W_]+two[\W_]+three(?![^\W_])"),
    "webdepot.selection.domains.lookup.whois_parser:of_sections": (
        "search",
        r"(?ims)^\[holder\]\s*\n(.*?)(?=^\[|\Z)",
    ),
    "webdepot.web.language.wording:_reason_pattern": (
        "match",
        r"at (?P<a>\d+(?:[.,]\d+)*%?) of (?P<b>\d+(?:[.,]\d+)*%?)",
    ),
}
"""Functions that compile a pattern from parts: how it is used, and an example of what it becomes."""


@dataclass(kw_only=True)
class Found:
    name: str
    pattern: str | bytes
    flags: int
    methods: set[str] = field(default_factory=set)

    def job(self) -> dict:
        is_bytes = isinstance(self.pattern, bytes)
        return {
            "name": self.name,
            "pattern": self.pattern.decode("latin-1") if is_bytes else self.pattern,
            "bytes": is_bytes,
            "flags": self.flags & ~(0 if is_bytes else re.UNICODE),
            "methods": sorted(self.methods) or list(ALL_METHODS),
            "longest": BOUNDED.get(self.name, (0, ""))[0],
        }


@cache
def modules() -> list[str]:
    names = [each.name for each in pkgutil.walk_packages([str(SOURCE)], "webdepot.")]
    return [name for name in names if ".migrations." not in name and not name.endswith("__main__")]


@cache
def tree_of(name: str) -> ast.Module:
    module = importlib.import_module(name)
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


@cache
def uses() -> dict[str, set[str]]:
    """How names are used: `_WORD.findall(…)` and `map(_WORD.match, …)` in any module, by the last name."""
    found = defaultdict(set)
    for name in modules():
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                owner = node.value
                last = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                found[f"{name}:{last}"].add(node.attr)
                found[last].add(node.attr)
    return found


def compiled_in(name: str, value: object, where: str):
    if isinstance(value, re.Pattern):
        used = uses().get(where) or uses().get(where.rpartition(":")[2]) or set()
        yield Found(name=where, pattern=value.pattern, flags=value.flags, methods=set(used))
    elif isinstance(value, tuple | list | set | frozenset):
        for number, each in enumerate(value):
            yield from compiled_in(name, each, f"{where}[{number}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from compiled_in(name, each, f"{where}[{key}]")
    elif type(value).__module__.startswith("webdepot") and not isinstance(value, type):
        for key in getattr(type(value), "__slots__", None) or vars(value):
            yield from compiled_in(name, getattr(value, key, None), f"{where}.{key}")


def in_globals(name: str):
    module = importlib.import_module(name)
    for key, value in vars(module).items():
        if getattr(value, "__module__", name) == name or isinstance(value, re.Pattern | tuple | dict | list):
            yield from compiled_in(name, value, f"{name}:{key}")


def calls_of_re(tree: ast.Module):
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "re"
                    and node.func.attr in {*METHODS, "compile"}
                ):
                    yield function.name, node


def flags_of(call: ast.Call) -> int:
    texts = [ast.unparse(each) for each in (*call.args[1:], *(word.value for word in call.keywords))]
    flags = [text for text in texts if text.startswith("re.") and text.replace("|", "").isprintable()]
    return sum({int(getattr(re, name)) for text in flags for name in re.findall(r"re\.([A-Z]+)", text)})


def in_functions(name: str):
    """Literal patterns in calls inside functions; for others, the name of the function."""
    for function, call in calls_of_re(tree_of(name)):
        argument = call.args[0]
        where = f"{name}:{function}"
        if isinstance(argument, ast.Constant):
            methods = {call.func.attr} - {"compile"}
            yield Found(
                name=f"{where}:{argument.value!r}",
                pattern=argument.value,
                flags=flags_of(call),
                methods=methods,
            )
        elif not (isinstance(argument, ast.Name) and argument.id.startswith("_") and argument.id.isupper()):
            yield where


@cache
def everything() -> tuple[dict[str, Found], frozenset[str]]:
    patterns: dict[str, Found] = {}
    put_together = set()
    for name in modules():
        for each in in_globals(name):
            patterns.setdefault(each.name, each)
        for each in in_functions(name):
            if isinstance(each, str):
                put_together.add(each)
            else:
                patterns.setdefault(each.name, each)
    return patterns, frozenset(put_together)


def find_slow(jobs: list[dict]) -> dict[str, str]:
    """The slow ones among these, each with its reason; in child processes with a budget."""
    slow: dict[str, str] = {}
    while jobs:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("pattern_inputs.py")), str(BUDGET_S)],
            input="".join(json.dumps(job) + "\n" for job in jobs).encode(),
            capture_output=True,
            check=False,
        )
        results = [json.loads(line) for line in done.stdout.splitlines()]
        slow |= {each["name"]: each["slow"] for each in results if each["slow"]}
        jobs = jobs[len(results) :]
        if jobs:
            assert done.returncode < 0, done.stderr.decode()
            slow[jobs[0]["name"]] = "it does not end"
            jobs = jobs[1:]
    return slow


def test_no_pattern_of_the_program_is_slow():
    patterns, _ = everything()
    assert len(patterns) > 200
    jobs = [each.job() for each in patterns.values()]
    assert find_slow(jobs) == {}


def test_patterns_that_are_put_together_are_known_and_not_slow():
    _, put_together = everything()
    assert put_together == PUT_TOGETHER.keys()
    jobs = [
        Found(name=name, pattern=pattern, flags=0, methods={method}).job()
        for name, (method, pattern) in PUT_TOGETHER.items()
    ]
    assert find_slow(jobs) == {}


def test_bounded_patterns_exist():
    assert BOUNDED.keys() <= everything()[0].keys()


@pytest.mark.parametrize(
    ("pattern", "flags", "methods"),
    [
        (r"(\S+)[^\S\n]+(\S.*?)[^\S\n]+(HTTP/[0-9.]+)[^\S\n]*(?=\n|\Z)", 0, {"match"}),
        (r"/.*?a.*?a.*?a.*?a.*?b", 0, {"match"}),
        (r"(?P<url>url\(\s*)(?P<mark>[\"']?)(?P<address>[^\"'()\s\\]*)(?P=mark)(?=\s*\))", re.I, {"sub"}),
        (r"\burl\(\s*(?:((?:[^\"'()\s\\]|\\.)*+))\s*\)", re.I, {"finditer"}),
        (r"<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*[^\s\",;]*)?)*)", 0, {"findall"}),
        (r"(a+)+$", 0, {"search"}),
        (r"(a|aa)+$", 0, {"match"}),
        (r"\s+$", 0, {"search"}),
        (rb"<!--.*?-->", re.S, {"sub"}),
        (r"<title[^>]*>(.*?)</title>", re.S, {"search"}),
        (r"^(?:[a-z]+[0-9]?)*\Z", 0, {"match"}),
        (r"(?:ab|a|b)*c", 0, {"search"}),
    ],
)
def test_the_test_finds_slow_ones(pattern, flags, methods):
    """The patterns that an attack used, and their like."""
    assert find_slow([Found(name="bad", pattern=pattern, flags=int(flags), methods=methods).job()])
