"""Jobs of Heritrix as profiles: the scope decides as there, and nothing without a counterpart gets lost."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from webdepot.cli.main import build_app
from webdepot.errors import InputError, WebdepotError
from webdepot.harvest.heritrix import beans, crawl_log, job, surts
from webdepot.harvest.report.log import as_json

JOB = """<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans">
 <bean id="simpleOverrides" class="org.springframework.beans.factory.config.PropertyOverrideConfigurer">
  <property name="properties"><value>
# a comment
metadata.jobName=mills
metadata.description=Mills of the north
metadata.operatorContactUrl=https://library.example/crawl
scope.rules[2].maxHops=7
  </value></property>
 </bean>
 <bean id="longerOverrides" class="org.springframework.beans.factory.config.PropertyOverrideConfigurer">
  <property name="properties"><props><prop key="seeds.textSource.value">
# URLS HERE
https://www.mill.example/north/index.html
brook.example
+http://(example,sluice,
  </prop></props></property>
 </bean>
 <bean id="metadata" class="org.archive.modules.CrawlMetadata" autowire="byName">
  <property name="robotsPolicyName" value="ignore"/>
 </bean>
 <bean id="seeds" class="org.archive.modules.seeds.TextSeedModule">
  <property name="textSource"><bean class="org.archive.spring.ConfigString">
   <property name="value"><value># [see override above]</value></property></bean></property>
 </bean>
 <bean id="scope" class="org.archive.modules.deciderules.DecideRuleSequence">
  <property name="rules"><list>
   <bean class="org.archive.modules.deciderules.RejectDecideRule"/>
   <bean class="org.archive.modules.deciderules.surt.SurtPrefixedDecideRule"/>
   <bean class="org.archive.modules.deciderules.TooManyHopsDecideRule"/>
   <bean class="org.archive.modules.deciderules.TransclusionDecideRule">
    <property name="maxTransHops" value="3"/></bean>
   <bean class="org.archive.modules.deciderules.surt.SurtPrefixedDecideRule">
    <property name="decision" value="REJECT"/><property name="seedsAsSurtPrefixes" value="false"/>
    <property name="surtsDumpFile" value="x.dump"/><property name="surtsSourceFile" value="negative.txt"/></bean>
   <bean class="org.archive.modules.deciderules.MatchesListRegexDecideRule">
    <property name="decision" value="REJECT"/>
    <property name="regexList"><list><value>.*/calendar/.*</value><value>(?=x)y</value></list></property></bean>
   <bean class="org.archive.modules.deciderules.HopsPathMatchesRegexDecideRule">
    <property name="regex" value=".*E.*"/></bean>
   <bean class="org.archive.modules.deciderules.PrerequisiteAcceptDecideRule"/>
  </list></property>
 </bean>
 <bean id="disposition" class="org.archive.crawler.postprocessor.DispositionProcessor">
  <property name="delayFactor" value="5.0"/><property name="minDelayMs" value="2500"/>
 </bean>
 <bean id="crawlLimiter" class="org.archive.crawler.framework.CrawlLimitEnforcer">
  <property name="maxDocumentsDownload" value="5000"/><property name="maxTimeSeconds" value="3600"/>
 </bean>
 <bean id="fetchProcessors" class="org.archive.modules.FetchChain">
  <property name="processors"><list><ref bean="fetchHttp"/></list></property>
 </bean>
</beans>
"""


@pytest.fixture
def run(home: Path):
    def called(*words: str, expect: int = 0) -> list[dict]:
        done = CliRunner().invoke(build_app(), ["--home", str(home), "--json", *words])
        error = done.exception
        status = error.exit_status if isinstance(error, WebdepotError) else done.exit_code
        assert status == expect, (done.output, error)
        called.error = str(error)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return called


def test_a_job_becomes_a_profile_whose_scope_decides_as_in_heritrix(run, tmp_path: Path):
    folder = tmp_path / "mills"
    folder.mkdir()
    (folder / "crawler-beans.cxml").write_text(JOB)
    (folder / "negative.txt").write_text("http://(example,mill,www,)/north/private\n")
    [done] = run("profile", "import", "mills", str(folder))
    assert (done["seeds"], done["saved"]) == (2, True)
    assert done["unmapped"][0].startswith(
        "scope rule 6, MatchesListRegexDecideRule: '^(?:(?=x)y)$' is not a usable regular expression"
    )
    assert done["unmapped"][1:] == [
        "scope rule 7, HopsPathMatchesRegexDecideRule: regex = .*E.*",
        "robotsPolicyName = ignore: robots.txt is obeyed. To change that, set robots and robots_reason in the profile",
        "CrawlMetadata.operatorContactUrl = https://library.example/crawl",
        "DispositionProcessor.delayFactor = 5.0",
    ]
    [shown] = run("profile", "show", "mills")
    assert shown["description"] == "mills: Mills of the north"
    expected = {"scope": "prefix", "hops": 7, "embed_hops": 3, "guess_hops": 1, "delay_s": 2.5}
    assert shown["values"] == expected | {"limit_documents": 5000, "limit_time_s": 3600.0}

    def answer(url: str) -> str:
        explained = CliRunner().invoke(build_app(), ["--home", str(run.home), "--json", *_explain(url)])
        return json.loads(explained.stdout)["answer"]

    run.home = tmp_path / "home"
    assert answer("https://mill.example/north/wind.html") == "accept"
    assert answer("https://mill.example/south/") == "reject"
    assert answer("https://mill.example/north/private/x") == "reject"
    assert answer("https://mill.example/north/calendar/2026") == "reject"
    assert answer("https://below.brook.example/x") == "accept", "a seed without a slash is a domain"
    assert answer("https://deep.sluice.example/x") == "accept"
    assert answer("https://sluiceway.example/") == "reject"
    run("profile", "import", "mills", str(folder), expect=4)
    assert "There is a profile mills already" in run.error


def _explain(url: str) -> tuple[str, ...]:
    return ("scope", "explain", url, "--profile", "mills")


def test_files_outside_the_job_are_not_read(tmp_path: Path, run):
    folder = tmp_path / "job"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("http://secret.example/\n")
    (folder / "crawler-beans.cxml").write_text(JOB.replace("negative.txt", "../secret.txt"))
    [done] = run("profile", "import", "x", str(folder / "crawler-beans.cxml"), "--dry-run")
    assert "the file ../secret.txt is not in the folder of the job" in done["unmapped"][0]
    assert "secret.example" not in done["text"] and not done["saved"]
    run("profile", "show", "x", expect=1)


def test_a_file_of_seeds_and_prefixes(tmp_path: Path, run):
    file = tmp_path / "seeds.txt"
    file.write_text("# sites\nhttps://www.mill.example/ # the mill\n+http://(nl,\n-http://(nl,spam,)/\n")
    [done] = run("profile", "import", "seeds", str(file))
    assert done["text"].splitlines()[1:] == [
        'seeds = ["https://www.mill.example/"]',
        'scope = "prefix"',
        "",
        "[[rules]]",
        'accept = "prefix"',
        'of = ["nl)", "nl,"]',
        "",
        "[[rules]]",
        'reject = "prefix"',
        'of = ["nl,spam)/"]',
    ]
    file.write_text("http://ok.example/\n+http://(nl\nmailto:x\n")
    run("profile", "import", "again", str(file), expect=2)
    assert run.error.startswith("Line 2: ") and "2 bad lines" in run.error
    run("profile", "import", "again", str(tmp_path / "missing"), expect=2)
    assert "cannot be read" in run.error


@pytest.mark.parametrize(
    ("text", "prefixes"),
    [
        ("http://(org,foo,www,)/a/", ["org,foo)/a/"]),
        ("https://(org,foo,", ["org,foo)", "org,foo:", "org,foo,"]),
        ("http://(org,foo,www,", ["org,foo)", "org,foo:", "org,foo,www,"]),
        ("http://(org,foo", ["org,foo"]),
        ("http://(org,foo:8080)/", ["org,foo:8080)/"]),
        ("(127.0.0.1)", ["1,0,0,127)"]),
        ("foo.org", ["org,foo)", "org,foo:", "org,foo,"]),
        ("http://www.foo.org/A/page.html", ["org,foo)/a/"]),
        ("http://www.foo.org/", ["org,foo)/"]),
    ],
)
def test_a_surt_prefix_is_the_start_of_keys(text: str, prefixes: list[str]):
    assert surts.prefixes_of(text) == prefixes


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b'<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><beans>&b;</beans>', "declares entities"),
        (b"<crawl-order/>", "its root element is not <beans>"),
        (b"<beans>", "not well-formed XML"),
        (b"<beans>" + b"<a/>" * 20_001 + b"</beans>", "more than 20,000 elements"),
        (b"<a>" * 1000, "not well-formed XML"),
        (b" " * (5 << 20), "larger than 4 MB"),
    ],
)
def test_hostile_jobs_are_refused(raw: bytes, problem: str):
    with pytest.raises(InputError, match=problem):
        beans.read(raw)


@given(st.text(alphabet="abc.,:()/@+-# \n0", max_size=60))
def test_any_list_is_read_or_refused(text: str):
    try:
        job.from_seeds(text.encode(), description="x").text()
    except InputError:
        return


LOG = """2024-05-01T10:00:01.120Z   200       5120 https://mill.example/ - - text/html #012 20240501100000900+45 sha1:AAAA - 3t,unwritten
2024-05-01T10:00:02.000Z   404        180 https://mill.example/gone.png E https://mill.example/ text/html #003 20240501100001800+9 sha1:BBBB - -
2024-05-01T10:00:03.000Z    -2          - https://away.example/x.png E https://mill.example/ no-type #004 - - - -
not a line of a log
2024-05-01T10:00:04.000Z   200
"""


def test_a_crawl_log_is_read_column_by_column(tmp_path):
    (tmp_path / "job.log").write_text(LOG)
    assert crawl_log.take_over(tmp_path / "job.log", tmp_path) == 2
    assert (tmp_path / "crawl.log").read_text() == LOG
    first, gone, away = map(json.loads, (tmp_path / "crawl.jsonl").read_text().splitlines())
    assert (first["at"], first["duration_s"], first["tries"]) == ("2024-05-01T10:00:00.900Z", 0.045, 3)
    assert (first["status"], first["size"], first["path"], first["note"]) == (200, 5120, "", "3t,unwritten")
    assert (gone["status"], gone["path"], gone["via"]) == (404, "E", "https://mill.example/")
    assert (away["status"], away["size"], away["tries"], away["digest"]) == (-2, 0, 0, "")


@given(st.text(max_size=300))
def test_no_line_of_a_crawl_log_breaks_the_reader(text):
    for each in (text, f"2024-05-01T10:00:01Z 200 1 {text}", LOG.splitlines()[0].replace("5120", text)):
        line = crawl_log.find_line(each)
        assert line is None or json.loads(as_json(line))["status"] == line.status
