"""robots.txt and X-Robots-Tag: decisions, delays, sitemaps; rules are stored and read again."""

from datetime import UTC, datetime

from webdepot.harvest.politeness import robots

TOKENS = (
    b"User-agent: *\n", b"User-agent: webdepot\n", b"Disallow: /", b"Allow: /", b"Crawl-delay: 10\n",
    b"Sitemap: http://a.example/s.xml\n", b"Request-rate: 1/5 0900-1700\n", b"Visit-time: 0600-0845\n",
    b"Disallow: /*", b"$\n", b"*", b"%2F", b"%", b"\xef\xbb\xbf", b"# ", b"nofollow", b"none",
    b"unavailable_after: ", b"Host: ", b"\r", b"/aaaa",
)  # fmt: skip
_AT = datetime(2020, 1, 1, tzinfo=UTC)
_URLS = ("http://a.example/", "http://a.example/aaaa/b?c=d%2F", "http://a.example/" + "a" * 60)


def one_input(data: bytes) -> None:
    rules = robots.of_answer(status=200, body=data, at=_AT, agent="webdepot")
    answers = [rules.decide(url).answer for url in _URLS]
    rules.shuts_out("http://a.example")
    delay = rules.crawl_delay_s
    assert delay is None or delay >= 0
    sitemaps = rules.sitemaps
    again = robots.from_json(rules.to_json())
    assert [again.decide(url).answer for url in _URLS] == answers
    assert (again.crawl_delay_s, again.sitemaps) == (delay, sitemaps)
    robots.tag_directives(data.decode("latin-1").split("\n"), "webdepot")
