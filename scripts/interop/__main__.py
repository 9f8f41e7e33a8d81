"""Test Webdepot with other programs and print a table: python scripts/interop [--slow] [NAME...]

1. Install the tools (`installing`): from PyPI, npm, Maven and Debian; `--slow`: also those in Go and Rust, which are
   compiled for minutes, and crawls.
2. Make an archive with two harvests of a small site, of which the second has a page that did not change; export
   it as WACZ, bag and OCFL; serve it on this machine. Harvest another site into an archive of its own (`world`).
3. Run each tool and compare with what we know. A tool that cannot be installed is listed with the reason.

Exits 1 if a tool that could be run gave a different result.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import imports
import installing
import waczs
import world
from installing import Unavailable
from running import Different, Tool

import captures
import containers
import depot
import portal

TOOLS = (*containers.TOOLS, *waczs.TOOLS, *captures.TOOLS, *portal.TOOLS, *depot.TOOLS, *imports.TOOLS)
NOT_RUN = {
    "JWAT-Tools": "not in a package registry as a program; its library is run as JWAT",
    "SolrWayback": "not in a package registry; a test compares our export with its normaliser",
    "OutbackCDX": "a server like ours, not a client; its clients are run",
    "Keycloak": "in Maven, but 180 MB and a minute for what tests do with an OpenID provider",
    "hanzo warctools": "knows no WARC 1.1",
    "Zeno": "its library gowarc is run",
    "oai-harvest": "needs an old lxml that does not build on this Python",
    "HTTP::OAIPMH::Validator": "in CPAN only; tests validate every response with the schemas",
    "W3C feedvalidator": "not in a package registry; feedparser is run",
    "rclone, SeaweedFS, moto": "tests use them as S3 servers",
}
"""Tools of a review that are not run here, and why."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Test Webdepot with other programs.")
    parser.add_argument("--slow", action="store_true", help="also tools that are compiled first, and crawls")
    parser.add_argument("names", nargs="*", help="only these tools")
    wanted = parser.parse_args()
    installing.pypi()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="webdepot-interop-") as name:
        folder = Path(name)
        home, warcs = world.make_served(folder)
        depot_root, own = world.make_own(folder)
        with world.serving(home) as (portal_url, replay_url):
            here = world.World(
                folder=folder, warcs=warcs, own=own, depot=depot_root, portal=portal_url, replay=replay_url
            )
            print(f"{'tool':24}{'from':8}{'version':28}{'what':38}result")
            for tool in TOOLS:
                if not wanted.names or tool.name in wanted.names:
                    failed += not _report(tool, here, is_slow=wanted.slow)
    for name, reason in NOT_RUN.items():
        print(f"{name:98}not run: {reason}")
    return 1 if failed else 0


def _report(tool: Tool, here: world.World, *, is_slow: bool) -> bool:
    """Run a tool and print its line; False if it gave a different result."""
    version, result = "", "ok"
    try:
        if tool.is_slow and not is_slow:
            raise Unavailable("takes minutes: make interop SLOW=1")
        version = tool.check(here)
    except Unavailable as reason:
        result = f"not run: {reason}"
    except Different as difference:
        result = f"FAILED: {difference}"
    print(f"{tool.name:24}{tool.source:8}{version:28}{tool.what:38}{result}", flush=True)
    return not result.startswith("FAILED")


if __name__ == "__main__":
    sys.exit(main())
