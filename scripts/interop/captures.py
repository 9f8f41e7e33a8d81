"""Indexes and mementos: do clients of others find the captures, and come to an end?"""

import installing
from installing import ROOT, Unavailable
from running import Tool, python, run, same, version_of
from world import World


def _cdx_toolkit(world: World) -> str:
    code = (
        "import sys, cdx_toolkit\n"
        "client = cdx_toolkit.CDXFetcher(source=sys.argv[1])\n"
        "print(len(list(client.iter('mill.example/*', limit=1000))))"
    )
    same(python(code, f"{world.replay}/cdx/search/cdx"), "3")
    return version_of("cdx_toolkit")


def _waybackpy(world: World) -> str:
    code = (
        "import sys\nfrom waybackpy import WaybackMachineCDXServerAPI as Api\n"
        "api = Api('https://mill.example/', 'interop')\napi.endpoint = sys.argv[1]\n"
        "import waybackpy.cdx_api as module\n"
        "api.sort, api.closest, api.limit = 'closest', '20240601', 1\n"
        "print(len(list(api.snapshots())))"
    )
    same(python(code, f"{world.replay}/cdx/search/cdx"), "1")
    return version_of("waybackpy")


def _memento(world: World) -> str:
    code = (
        "import sys, datetime\nfrom memento_client import MementoClient\n"
        # It would ask the live web first whether the address is an archived one.
        "MementoClient.get_original_uri = staticmethod(lambda uri, *more, **named: uri)\n"
        "client = MementoClient(timegate_uri=sys.argv[1], check_native_timegate=False)\n"
        "got = client.get_memento_info('https://mill.example/', datetime.datetime(2024, 6, 1))\n"
        "print(sorted(got['mementos']))"
    )
    same(python(code, f"{world.replay}/all/"), "['closest', 'first', 'last', 'next']")
    return version_of("memento_client")


def _pywb_memento(world: World) -> str:
    interpreter = ROOT / ".pywb" / "bin" / "python"
    if not interpreter.exists():
        raise Unavailable("make install-test installs it")
    code = (
        "import sys\nfrom pywb.warcserver.index.indexsource import MementoIndexSource\n"
        "source = MementoIndexSource.init_from_string('memento+' + sys.argv[1])\n"
        "params = {'url': 'https://mill.example/', 'closest': '20240601000000', 'key': b'example,mill)/'}\n"
        "print([str(one['timestamp']) for one in source.load_index(params)][:1])"
    )
    output = run([interpreter, "-W", "ignore", "-c", code, f"{world.replay}/all/"]).strip().splitlines()[-1]
    same(output, "['20240101000000']")
    return pywb_version()


def _pywb_xmlquery(world: World) -> str:
    interpreter = ROOT / ".pywb" / "bin" / "python"
    if not interpreter.exists():
        raise Unavailable("make install-test installs it")
    code = (
        "import sys\nfrom pywb.warcserver.index.indexsource import XmlQueryIndexSource\n"
        "source = XmlQueryIndexSource(sys.argv[1])\n"
        "exact = source.load_index({'url': 'https://mill.example/'})\n"
        "prefix = source.load_index({'url': 'https://mill.example/', 'matchType': 'prefix'})\n"
        "print([len(list(exact)), len(list(prefix))])"
    )
    output = run([interpreter, "-W", "ignore", "-c", code, f"{world.replay}/all/xmlquery"]).strip()
    same(output.splitlines()[-1], "[2, 3]")
    return pywb_version()


def pywb_version() -> str:
    code = "from importlib.metadata import version; print(version('pywb'))"
    return run([ROOT / ".pywb" / "bin" / "python", "-c", code]).strip()


def _wayback(world: World) -> str:
    """EDGI's client, which asks the addresses of the Internet Archive."""
    code = (
        "import sys, wayback\n"
        "import wayback._client as module\nmodule.CDX_SEARCH_URL = sys.argv[1]\n"
        "client = wayback.WaybackClient()\n"
        "print(len(list(client.search('mill.example/*'))))"
    )
    same(python(code, f"{world.replay}/cdx/search/cdx"), "3")
    return version_of("wayback")


def _memgator(world: World) -> str:
    """Our TimeMap as one of the archives that it aggregates."""
    program = installing.go("github.com/oduwsdl/memgator", "memgator")
    archives = world.folder / "archives.json"
    archives.write_text(
        f'[{{"id": "ours", "name": "Ours", "timegate": "{world.replay}/all/", "timemap": "{world.replay}/all/timemap/link/"}}]'
    )
    output = run([program, "--arcs", archives, "--format", "link", "https://mill.example/"])
    same(output.count('rel="memento"') + output.count('memento"'), 2)
    return "latest"


TOOLS = (
    Tool(name="cdx_toolkit", source="PyPI", what="all captures, and an end", check=_cdx_toolkit),
    Tool(name="waybackpy", source="PyPI", what="closest capture, and an end", check=_waybackpy),
    Tool(name="wayback (EDGI)", source="PyPI", what="all captures, and an end", check=_wayback),
    Tool(name="memento_client", source="PyPI", what="TimeGate: closest, first, next, last", check=_memento),
    Tool(name="pywb", source="PyPI", what="our TimeGate as a source", check=_pywb_memento),
    Tool(name="pywb", source="PyPI", what="our XML query as a source", check=_pywb_xmlquery),
    Tool(name="MemGator", source="Go", what="our TimeMap as a source", check=_memgator, is_slow=True),
)
