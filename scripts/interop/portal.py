"""OAI-PMH, the API and feeds of the portal."""

import os

import installing
from installing import PLACE
from running import Different, Tool, python, run, same, version_of
from world import World


def _sickle(world: World) -> str:
    code = (
        "import sys, io, sickle, pymarc\nclient = sickle.Sickle(sys.argv[1])\n"
        "records = list(client.ListRecords(metadataPrefix='marc21'))\n"
        "field = pymarc.parse_xml_to_array(io.StringIO(records[0].raw))[0]['008'].data\n"
        "print(len(records) > 0, len(field), field[23], field[39])"
    )
    same(python(code, f"{world.portal}/oai"), "True 40 o c")
    return f"{version_of('sickle')}, pymarc {version_of('pymarc')}"


def _openapi(world: World) -> str:
    code = (
        "import json, sys, urllib.request\nfrom openapi_spec_validator import validate\n"
        "validate(json.load(urllib.request.urlopen(sys.argv[1])))"
    )
    python(code, f"{world.portal}/api/openapi.json")
    return version_of("openapi-spec-validator")


def _feed(world: World) -> str:
    code = (
        "import sys, feedparser\nfeed = feedparser.parse(sys.argv[1])\n"
        "print(feed.bozo, len(feed.entries) > 0, any(link.rel == 'self' for link in feed.feed.links))"
    )
    same(python(code, f"{world.portal}/search.atom?q=turns"), "False True True")
    return version_of("feedparser")


def _scythe(world: World) -> str:
    code = (
        "import sys\nfrom oaipmh_scythe import Scythe\nclient = Scythe(sys.argv[1])\n"
        "print(len(list(client.list_records(metadata_prefix='oai_dc'))), client.identify() is not None)"
    )
    same(python(code, f"{world.portal}/oai"), f"{_records(world)} True")
    return version_of("oaipmh-scythe")


def _records(world: World) -> str:
    """How many records sickle finds."""
    code = "import sys, sickle; print(len(list(sickle.Sickle(sys.argv[1]).ListRecords(metadataPrefix='oai_dc'))))"
    return python(code, f"{world.portal}/oai")


def _metha(world: World) -> str:
    sync = installing.go("github.com/miku/metha/cmd/metha-sync", "metha-sync")
    cat = installing.go("github.com/miku/metha/cmd/metha-cat", "metha-cat")
    place = {**os.environ, "METHA_DIR": str(world.folder / "metha")}
    run([sync, "-no-intervals", f"{world.portal}/oai"], variables=place)
    output = run([cat, f"{world.portal}/oai"], variables=place)
    same(output.count("<record>") + output.count("<record "), int(_records(world)))
    return run([sync, "-v"]).split()[-1]


def _yaz(world: World) -> str:
    """MARCXML of our records, read by YAZ."""
    program, variables = installing.debian("yaz-marcdump", "yaz", "libyaz5")
    code = (
        "import sys, re, sickle\nrecords = list(sickle.Sickle(sys.argv[1]).ListRecords(metadataPrefix='marc21'))\n"
        "inner = ''.join(re.findall(r'(?s)<(?:\\w+:)?record[^>]*MARC21.*?</(?:\\w+:)?record>', ''.join(r.raw for r in records)))\n"
        "print(f'<collection xmlns=\"http://www.loc.gov/MARC21/slim\">{inner}</collection>')"
    )
    document = world.folder / "marc.xml"
    document.write_text(python(code, f"{world.portal}/oai"))
    output = run([program, "-i", "marcxml", "-o", "line", document], variables=variables)
    same(output.count("008 ") > 0 and "245 " in output, True)
    return run([program, "-V"], variables=variables).split()[2]


def _schemathesis(world: World) -> str:
    """No request that fits the description of the API gets a server error."""
    program = PLACE / "bin" / "schemathesis"
    command = [program, "run", f"{world.portal}/api/openapi.json", "--checks", "not_a_server_error"]
    output = run([*command, "--max-examples", "3", "--max-time", "120"], codes=(0, 1))
    if "Server error" in output:
        raise Different(output.strip()[-300:])
    return version_of("schemathesis")


TOOLS = (
    Tool(name="sickle, pymarc", source="PyPI", what="OAI-PMH, MARC 008", check=_sickle),
    Tool(name="oaipmh-scythe", source="PyPI", what="OAI-PMH", check=_scythe),
    Tool(name="openapi-spec-validator", source="PyPI", what="description of the API", check=_openapi),
    Tool(
        name="schemathesis", source="PyPI", what="the API: no server error", check=_schemathesis, is_slow=True
    ),
    Tool(name="feedparser", source="PyPI", what="Atom feed of a search", check=_feed),
    Tool(name="YAZ", source="Debian", what="MARCXML over OAI-PMH", check=_yaz),
    Tool(name="metha", source="Go", what="OAI-PMH", check=_metha, is_slow=True),
)
