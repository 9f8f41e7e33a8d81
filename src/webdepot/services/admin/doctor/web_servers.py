"""Checks of the web servers in front of the portal, which ask the running portal and replay server."""

from urllib.parse import urlsplit

from webdepot.access.replay.site_hosts import SiteHosts
from webdepot.archive import Archive
from webdepot.services.admin import proxy_probe
from webdepot.services.admin.doctor.health_check import HealthCheck
from webdepot.services.admin.proxy_probe import ProbeResult


def check_proxies(archive: Archive) -> HealthCheck:
    """Whether a reader can claim another address: asks the running portal and replay with a forged one."""
    config, name = archive.config.web, "addresses of readers"
    if not config.portal_url:
        return HealthCheck(name=name, state="ok", message="there is no web server in front of the portal")
    advice = (
        "in [web] name only your own web servers as trusted_proxies, and let them replace the header: "
        "proxy_set_header X-Forwarded-For $remote_addr; (docs/how-to/behind-nginx.md)"
    )
    if not config.trusted_proxies and proxy_probe.is_proxied(config):
        message = "[web] trusted_proxies is empty, so all readers have the address of the web server in front"
        return HealthCheck(name=name, state="warning", message=message, remedy=advice)
    results = {url: proxy_probe.probe(url) for url in (config.portal_url, config.replay_url)}
    for url, result in results.items():
        if result is ProbeResult.FORGED:
            message = f"anybody can claim any address at {url}: a forged X-Forwarded-For was believed"
            return HealthCheck(name=name, state="error", message=message, remedy=advice)
        if result is ProbeResult.UNKNOWN:
            message = f"the web server in front of {url} does not send the addresses of readers"
            return HealthCheck(name=name, state="error", message=message, remedy=advice)
    missing = [url for url, result in results.items() if result is None]
    if missing:
        message = f"could not be checked, because there was no answer from {', '.join(missing)}"
        remedy = "start the portal, then: webdepot doctor"
        return HealthCheck(name=name, state="warning", message=message, remedy=remedy)
    return HealthCheck(name=name, state="ok", message="a forged X-Forwarded-For is not believed")


def check_site_hosts(archive: Archive) -> HealthCheck:
    """Whether browsers keep archived sites apart; asks the running replay server by the name of a site."""
    config, name = archive.config.web, "host names of sites"
    is_on = config.host_per_site == "on" or (config.host_per_site == "auto" and not config.portal_url)
    if not is_on:
        message = (
            "all archived sites share one host name: while two are open, one can change what the scripts of "
            "the other have stored"
        )
        remedy = 'set host_per_site = "on" in [web] (docs/how-to/behind-nginx.md)'
        return HealthCheck(name=name, state="warning", message=message, remedy=remedy)
    if config.portal_url:
        replay_url = config.replay_url.rstrip("/")
        url = SiteHosts(replay_url=replay_url, parent_url=replay_url).url_for("http://site.example/")
        if proxy_probe.probe(replay_url) is None:
            message = f"could not be checked, because there was no answer from {replay_url}"
            remedy = "start the portal, then: webdepot doctor"
            return HealthCheck(name=name, state="warning", message=message, remedy=remedy)
        if proxy_probe.probe(url) is None:
            message = f"readers cannot see archived pages: no answer from {url}"
            remedy = (
                f"let all names below {urlsplit(replay_url).hostname} lead to the replay server: in the name "
                "service, the certificate and the web server (docs/how-to/behind-nginx.md)"
            )
            return HealthCheck(name=name, state="error", message=message, remedy=remedy)
    return HealthCheck(name=name, state="ok", message="each archived site has a host name of its own")
