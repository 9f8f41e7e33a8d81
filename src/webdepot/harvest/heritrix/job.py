"""Converts a Heritrix 3 job to a profile, with a list of what is not supported.

    seeds (text or file)                          seeds
    scope: SurtPrefixed, MatchesListRegex, …      scope and rules, in their order
    scope: TooManyHops, Transclusion, …           hops, embed_hops, guess_hops, repeats, path_segments
    disposition, crawlController, crawlLimiter    delay_s, workers, limits

Rules of Heritrix and of profiles work in the same way: the last one that answers wins. A rule without a
counterpart is reported, never replaced by something similar. The profile always obeys robots.txt: ignoring it
needs a reason, which a person must write.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webdepot.errors import ConfigError, InputError
from webdepot.harvest import profile_text
from webdepot.harvest.heritrix import beans, surts
from webdepot.harvest.heritrix.beans import Bean
from webdepot.harvest.scope import profile_rules

ReadFile = Callable[[str], bytes | None]
"""The bytes of a file of the job, by the path that the job states; None if it is missing or elsewhere."""

_NUMBERS: Mapping[tuple[str, str], tuple[str, float]] = {
    ("DispositionProcessor", "minDelayMs"): ("delay_s", 0.001),
    ("CrawlController", "maxToeThreads"): ("workers", 1),
    ("CrawlLimitEnforcer", "maxBytesDownload"): ("limit_bytes", 1),
    ("CrawlLimitEnforcer", "maxDocumentsDownload"): ("limit_documents", 1),
    ("CrawlLimitEnforcer", "maxTimeSeconds"): ("limit_time_s", 1),
}
"""Bean and property -> key of a profile, and the factor by which the value is multiplied."""
_RULE_NUMBERS: Mapping[str, tuple[tuple[str, str, int], ...]] = {
    "TooManyHopsDecideRule": (("maxHops", "hops", 20),),
    "TransclusionDecideRule": (("maxTransHops", "embed_hops", 2), ("maxSpeculativeHops", "guess_hops", 1)),
    "PathologicalPathDecideRule": (("maxRepetitions", "repeats", 2),),
    "TooManyPathSegmentsDecideRule": (("maxPathDepth", "path_segments", 20),),
}
"""Rule -> its properties, each with the key of a profile and Heritrix's default."""
_BUILT_IN = frozenset({"RejectDecideRule", "PrerequisiteAcceptDecideRule", "SchemeNotInSetDecideRule"})
_SCOPES = {"OnHostsDecideRule": "host", "OnDomainsDecideRule": "domain", "AcceptDecideRule": "any"}
_IGNORED = frozenset(
    {("CrawlMetadata", "jobName"), ("CrawlMetadata", "description"), ("TextSeedModule", "textSource")}
    | {("SurtPrefixedDecideRule", name) for name in ("surtsDumpFile", "decision", "seedsAsSurtPrefixes")}
)
"""Properties that are read elsewhere or have no meaning here."""


@dataclass(slots=True, kw_only=True)
class ImportedJob:
    """A profile, as far as the job maps."""

    keys: dict[str, Any] = field(default_factory=dict)
    rules: list[dict[str, object]] = field(default_factory=list)
    unmapped: list[str] = field(default_factory=list)
    """What is not in the profile, with the reason, for the person who imports it."""

    def text(self) -> str:
        """The profile as TOML."""
        text = ""
        for name in reversed(self.keys):  # each is put before the others
            text = profile_text.with_key(text, name, self.keys[name])
        return profile_text.with_rules(text, self.rules) if self.rules else text


def from_seeds(raw: bytes, *, description: str) -> ImportedJob:
    """A file of seeds and SURT prefixes; InputError names the first bad line, or says that it is empty."""
    read = surts.read(raw)
    if read.bad:
        line, problem = read.bad[0]
        raise InputError(f"Line {line}: {problem} ({len(read.bad)} bad lines in all.)")
    if not (read.seeds or read.accepted or read.rejected):
        raise InputError("The file has no seed and no SURT prefix.")
    job = ImportedJob(keys={"description": description, "seeds": read.seeds, "scope": "prefix"})
    if not read.seeds:
        del job.keys["seeds"]
    _add_prefixes(job, "accept", read.accepted)
    _add_prefixes(job, "reject", read.rejected)
    return job


def from_beans(raw: bytes, read_file: ReadFile) -> ImportedJob:
    """A job (`crawler-beans.cxml`); InputError if it is not one."""
    listed = beans.read(raw)
    job = ImportedJob()
    metadata = next((bean.properties for bean in listed if bean.kind == "CrawlMetadata"), {})
    stated = [str(metadata.get(name, "")) for name in ("jobName", "description")]
    job.keys["description"] = ": ".join(text for text in stated if text)[:500] or "A job of Heritrix"
    seeds = _seeds(job, listed, read_file)
    job.keys["scope"] = "prefix"
    scope = next((bean for bean in listed if bean.name == "scope"), None)
    listed_rules = scope.properties.get("rules") if scope is not None else None
    for number, rule in enumerate(listed_rules if isinstance(listed_rules, list) else (), start=1):
        if isinstance(rule, Bean):
            _take_rule(job, rule, f"scope rule {number}, {rule.kind}", seeds, read_file)
    if scope is None or not isinstance(listed_rules, list):
        job.unmapped.append("the job has no bean `scope` with rules: what belongs to a seed is its path")
    elif not any(isinstance(rule, Bean) and rule.kind == "TransclusionDecideRule" for rule in listed_rules):
        job.keys["embed_hops"] = 0
    for bean in listed:
        if bean is not scope:
            _take_settings(job, bean)
    return job


def _seeds(job: ImportedJob, listed: Iterable[Bean], read_file: ReadFile) -> surts.SeedFile:
    read = surts.SeedFile()
    for bean in listed:
        if bean.kind == "TextSeedModule":
            raw = _text(bean.properties.get("textSource"), read_file, job, "seeds")
            read = surts.read(raw)
            job.unmapped += [f"seeds, line {line}: {problem}" for line, problem in read.bad]
    if read.seeds:
        job.keys["seeds"] = read.seeds
    return read


def _text(source: object, read_file: ReadFile, job: ImportedJob, what: str) -> bytes:
    """The text of a ConfigString or ConfigFile; empty if there is none."""
    path = source if isinstance(source, str) else ""
    if isinstance(source, Bean):
        if "value" in source.properties:
            return str(source.properties["value"]).encode()
        path = str(source.properties.get("path", ""))
    if not path:
        return b""
    raw = read_file(path)
    if raw is None:
        job.unmapped.append(f"{what}: the file {path[:200]} is not in the folder of the job")
    return raw or b""


def _take_rule(job: ImportedJob, rule: Bean, where: str, seeds: surts.SeedFile, read_file: ReadFile) -> None:
    values = rule.properties
    if str(values.get("enabled", "true")).lower() == "false" or rule.kind in _BUILT_IN:
        return
    if rule.kind in _RULE_NUMBERS:
        for name, target, default in _RULE_NUMBERS[rule.kind]:
            job.keys[target] = _number(job, where, name, values.get(name, default), default)
    elif rule.kind in _SCOPES:
        job.keys["scope"] = _SCOPES[rule.kind]
    elif rule.kind == "SurtPrefixedDecideRule":
        _take_prefixes(job, rule, where, seeds, read_file)
    elif rule.kind in ("MatchesListRegexDecideRule", "MatchesRegexDecideRule", "NotMatchesRegexDecideRule"):
        _take_expressions(job, rule, where)
    else:
        job.unmapped.append(f"{where}: {_shown(values)}")


def _take_prefixes(
    job: ImportedJob, rule: Bean, where: str, seeds: surts.SeedFile, read_file: ReadFile
) -> None:
    values = rule.properties
    answer = _decision(values)
    if str(values.get("seedsAsSurtPrefixes", "true")).lower() != "false":
        _add_prefixes(job, answer, seeds.accepted)
        _add_prefixes(job, "reject", seeds.rejected)
    if str(values.get("alsoCheckVia", "false")).lower() == "true":
        job.unmapped.append(f"{where}: alsoCheckVia (pages that link to an address) is not supported")
    for name in ("surtsSourceFile", "surtsSource"):
        read = surts.read(_text(values.get(name), read_file, job, where), seeds_are_prefixes=True)
        _add_prefixes(job, answer, read.accepted)
        job.unmapped += [f"{where}, line {line} of its file: {problem}" for line, problem in read.bad]


def _take_expressions(job: ImportedJob, rule: Bean, where: str) -> None:
    values = rule.properties
    listed = values.get("regexList", values.get("regex", []))
    expressions = [text for text in (listed if isinstance(listed, list) else [listed]) if text]
    if str(values.get("listLogicalOr", "true")).lower() == "false" and len(expressions) > 1:
        job.unmapped.append(f"{where}: all expressions at once (listLogicalOr = false): {_shown(values)}")
        return
    kept = []
    for text in expressions:
        whole = f"^(?:{text})$"  # Heritrix matches the whole address
        try:
            profile_rules.from_table({"reject": "regex", "of": [whole]}, where)
        except ConfigError as error:
            job.unmapped.append(str(error))
        else:
            kept.append(whole)
    if kept:
        table: dict[str, object] = {_decision(values): "regex", "of": kept}
        job.rules.append(table | ({"unless": True} if rule.kind.startswith("Not") else {}))


def _add_prefixes(job: ImportedJob, answer: str, prefixes: list[str]) -> None:
    if prefixes:
        job.rules.append({answer: "prefix", "of": list(dict.fromkeys(prefixes))})


def _decision(values: Mapping[str, Any]) -> str:
    return "reject" if str(values.get("decision", "ACCEPT")).upper() == "REJECT" else "accept"


def _take_settings(job: ImportedJob, bean: Bean) -> None:
    for name, value in bean.properties.items():
        number = _NUMBERS.get((bean.kind, name))
        if number is not None:
            target, unit = number
            stated = _number(job, f"{bean.kind}.{name}", name, value, 0)
            if stated:
                job.keys[target] = stated if unit == 1 and target != "limit_time_s" else float(stated) * unit
        elif (bean.kind, name) == ("CrawlMetadata", "robotsPolicyName"):
            if str(value).lower() not in ("obey", "classic", "robotstxt"):
                job.unmapped.append(
                    f"robotsPolicyName = {str(value)[:40]}: robots.txt is obeyed. To change that, "
                    "set robots and robots_reason in the profile"
                )
        elif (bean.kind, name) not in _IGNORED and not _is_wiring(value):
            job.unmapped.append(f"{bean.kind or bean.name}.{name} = {_brief(value)}")
    if bean.kind in ("Sheet", "SheetOverlaysManager") or bean.kind.endswith("SheetAssociation"):
        job.unmapped.append(f"{bean.kind} {bean.name}: write [hosts] in the profile instead")


def _is_wiring(value: object) -> bool:
    """Whether a property only connects beans with each other."""
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(isinstance(one, Bean) and one.kind == "ref" for one in values)


def _number(job: ImportedJob, where: str, name: str, value: object, default: int) -> int:
    text = str(value).strip()
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    job.unmapped.append(f"{where}: {name} = {text[:60]!r} is not a number; {default} was used")
    return default


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_brief(value)}" for name, value in values.items()) or "no counterpart"


def _brief(value: object) -> str:
    if isinstance(value, Bean):
        return value.kind or value.name
    if isinstance(value, list):
        return f"[{', '.join(_brief(one) for one in value[:5])}]"
    return str(value)[:100]
