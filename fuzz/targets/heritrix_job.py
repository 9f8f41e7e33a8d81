"""Jobs of Heritrix (`crawler-beans.cxml`), and files of seeds and SURT prefixes: what was read must be a
profile.
"""

from webdepot.harvest import profile
from webdepot.harvest.heritrix import job

TOKENS = (
    b"<beans xmlns='http://www.springframework.org/schema/beans'>",
    b"<bean id='scope' class='org.archive.modules.deciderules.DecideRuleSequence'>",
    b"<property name='rules'><list>",
    b"<bean class='org.archive.modules.deciderules.surt.SurtPrefixedDecideRule'>",
    b"<property name='decision' value='REJECT'/>",
    b"<bean class='org.archive.modules.deciderules.MatchesListRegexDecideRule'>",
    b"<property name='regexList'><list><value>",
    b"<bean class='org.springframework.beans.factory.config.PropertyOverrideConfigurer'>",
    b"scope.rules[0].decision=ACCEPT\n",
    b"<property name='textSource'>",
    b"<bean class='org.archive.modules.seeds.TextSeedModule'>",
    b"<bean class='org.archive.crawler.framework.CrawlLimitEnforcer'>",
    b"<property name='maxBytesDownload' value='9'/>",
    b"+http://(org,example,",
    b"-http://(org,example,www,)/a",
    b"http://example.org/\n",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"&b;",
    b"<props><prop key='a'>",
    b"<map><entry key='a' value='b'/>",
    b"[9999]",
)


def one_input(data: bytes) -> None:
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        read = job.from_beans(data, lambda name: data[:200] if name.startswith("s") else None)
    else:
        read = job.from_seeds(data, description="Seeds")
    profile.from_text("fuzz", read.text(), origin="fuzz")
