"""Host names of archived sites: valid, readable, and one for each archived host."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.access.replay.site_hosts import SiteHosts, label_of

HOSTS = SiteHosts(replay_url="http://localhost:81", parent_url="http://webdepot.localhost:81")
DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")


@pytest.mark.parametrize(
    ("url", "start"),
    [
        ("http://www.example.org/a?b", "www-example-org-"),
        ("https://www.example.org:8443/", "www-example-org-8443-"),
        ("http://xn--mnchen-3ya.example/", "xn-mnchen-3ya-example-"),
        ("http://[2001:db8::1]/", "2001-db8-1-"),
        (f"http://{'long.' * 40}example/", "long-long-"),
    ],
)
def test_a_label_says_which_site_it_is(url: str, start: str):
    assert label_of(url).startswith(start) and DNS_LABEL.match(label_of(url))


def test_pages_of_a_host_share_a_label_and_hosts_do_not():
    assert label_of("http://a.example/x") == label_of("https://A.example/y")
    urls = ["http://a-b.example/", "http://a.b.example/", "http://a.b.example:8080/", "http://b.example/"]
    long = [f"http://{'x' * 60}.{name}.example/" for name in "ab"]
    assert len({label_of(url) for url in (*urls, *long)}) == 6


@given(st.text(min_size=1))
def test_every_host_has_a_valid_label_that_is_recognised(host: str):
    url = f"http://{host}/"
    assert DNS_LABEL.match(label_of(url))
    origin = HOSTS.url_for(url)
    if origin != HOSTS.replay_url:
        assert HOSTS.find_asked(origin.removeprefix("http://")) == origin


def test_files_without_a_host_and_machines_have_the_servers_own_name():
    assert HOSTS.url_for("urn:nbn:de:1") == "http://localhost:81"
    for host in ("localhost:81", "webdepot.localhost:81", "", "replay.example.org"):
        assert HOSTS.find_asked(host) == "http://localhost:81"


@pytest.mark.parametrize(
    "label", ["", "x", "-0123456789abcdef", "a.b-0123456789abcdef", "é-0123456789abcdef"]
)
def test_other_labels_are_refused(label: str):
    assert HOSTS.find_asked(f"{label}.webdepot.localhost:81") is None


def test_without_a_parent_all_sites_share_one_origin():
    shared = SiteHosts(replay_url="https://replay.example.org")
    assert shared.url_for("http://a.example/") == shared.replay_url
    assert shared.find_asked("x.replay.example.org") == shared.replay_url
