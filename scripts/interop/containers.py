"""WARC files: do readers and validators of others accept the ones that Webdepot writes?"""

import gzip
import shutil
import urllib.request
from pathlib import Path

import installing
from installing import PLACE
from running import Different, Tool, run, same, version_of
from world import World

JWARC = "org.netpreserve:jwarc:0.36.0"
JHOVE = "1.28.0"
COMMONS = "3.0.4"
JWAT = "1.2.1"


def _warcio(world: World) -> str:
    """Only the payload digest of the chunked response differs (docs/how-to/machine-interfaces.md)."""
    for path in world.warcs:
        run([PLACE / "bin" / "warcio", "check", path])
    _digests_of_chunked(world, [PLACE / "bin" / "warcio", "check", "-v"], "digest failed")
    return version_of("warcio")


def _digests_of_chunked(world: World, command: list[str | Path], complaint: str) -> None:
    complaints = []
    for path in world.own:
        output = run([*command, path], codes=(0, 1))
        complaints += [line for line in output.splitlines() if complaint in line]
    same(len(complaints), 1)


def _fastwarc(world: World) -> str:
    for path in (*world.warcs, *world.own):
        run([PLACE / "bin" / "fastwarc", "check", path])
    return version_of("fastwarc")


def _cdxj_indexer(world: World) -> str:
    theirs = run([PLACE / "bin" / "cdxj-indexer", "--sort", *world.warcs]).splitlines()
    ours = urllib.request.urlopen(f"{world.replay}/all/cdx?url=mill.example/*").read().decode().splitlines()
    same([line.split(" ")[:2] for line in ours], [line.split(" ")[:2] for line in sorted(theirs)])
    return version_of("cdxj-indexer")


def _jwarc(world: World) -> str:
    path = installing.maven_file(f"{JWARC}:jar")
    for warc in (*world.warcs, *world.own):
        run(["java", "-cp", path, "org.netpreserve.jwarc.tools.WarcTool", "validate", warc])
    return JWARC.rsplit(":", 1)[-1]


def _jwarc_dedupe(world: World) -> str:
    """Check that fetching the same page again gives a revisit of our capture."""
    path = installing.maven_file(f"{JWARC}:jar")
    shutil.copy(world.warcs[0], world.folder / "again.warc.gz")
    tool = ["java", "-cp", path, "org.netpreserve.jwarc.tools.WarcTool", "dedupe", "--minimum-size", "0"]
    run([*tool, "--cdx-server", f"{world.replay}/outbackcdx/all", "again.warc.gz"], folder=world.folder)
    same(b"WARC-Type: revisit" in gzip.decompress((world.folder / "again-dedup.warc.gz").read_bytes()), True)
    return JWARC.rsplit(":", 1)[-1]


def _jhove(world: World) -> str:
    """JHOVE knows neither WARC 1.1 nor digests of revisits; every other complaint would be ours."""
    libraries = installing.maven(
        "jhove",
        f"org.openpreservation.jhove:jhove-apps:{JHOVE}",
        f"org.openpreservation.jhove:jhove-ext-modules:{JHOVE}",
    )
    settings = world.folder / "jhove.conf"
    settings.write_text(
        '<jhoveConfig xmlns="http://schema.openpreservation.org/ois/xml/ns/jhove/jhoveConfig">'
        f"<tempDirectory>{world.folder}</tempDirectory><bufferSize>131072</bufferSize>"
        "<module><class>edu.harvard.hul.ois.jhove.module.WarcModule</class></module></jhoveConfig>"
    )
    for path in world.own:
        unpacked = world.folder / "jhove.warc"
        unpacked.write_bytes(gzip.decompress(path.read_bytes()))
        output = run(
            [
                "java",
                "-cp",
                libraries,
                "edu.harvard.hul.ois.jhove.Jhove",
                "-c",
                settings,
                "-m",
                "WARC-kb",
                unpacked,
            ]
        )
        messages = [line.strip() for line in output.splitlines() if "ErrorMessage:" in line]
        known = ("Magic version number", "payload digest", "payloadDigest", "Payload-Digest")
        unknown = [line for line in messages if not any(words in line for words in known)]
        same(unknown, [])
        if "Status:" not in output:
            raise Different(output[-200:])
    return JHOVE


_JWAT_PROGRAM = """
import java.io.*; import org.jwat.common.*; import org.jwat.warc.*;
public class Check { public static void main(String[] args) throws Exception {
  for (String name : args) { try (InputStream in = new BufferedInputStream(new FileInputStream(name), 8192)) {
    WarcReader reader = WarcReaderFactory.getReader(in, 8192);
    reader.setBlockDigestEnabled(true); reader.setPayloadDigestEnabled(true);
    reader.setWarcTargetUriProfile(UriProfile.RFC3986_ABS_16BIT_LAX);
    WarcRecord record; int count = 0;
    while ((record = reader.getNextRecord()) != null) { record.close(); count++;
      for (Diagnosis each : record.diagnostics.getErrors())
        System.out.println("ERROR " + each.type + " " + each.entity + " " + record.header.warcTargetUriStr); }
    for (Diagnosis each : reader.diagnostics.getErrors()) System.out.println("ERROR file " + each.type + " " + each.entity);
    System.out.println("RECORDS " + count); } } } }
"""


def _jwat(world: World) -> str:
    """As JWAT-Tools test -e, which is not in a registry: the same library."""
    libraries = installing.maven("jwat", f"org.jwat:jwat-warc:{JWAT}")
    program = world.folder / "Check.java"
    program.write_text(_JWAT_PROGRAM)
    output = run(["java", "-cp", libraries, program, *world.own])
    errors = [line for line in output.splitlines() if line.startswith("ERROR")]
    expected = [line for line in errors if "Incorrect payload digest" in line and line.endswith("/chunked")]
    same([line for line in errors if line not in expected], [])
    return f"jwat-warc {JWAT}"


def _commons(world: World) -> str:
    """The extractor of Heritrix and the Internet Archive: CDX and WAT."""
    libraries = installing.maven(
        "webarchive-commons",
        f"org.netpreserve.commons:webarchive-commons:{COMMONS}",
        "org.apache.hadoop:hadoop-core:1.2.1",
    )
    program = ["java", "-cp", libraries, "org.archive.extract.ResourceExtractor"]
    for path in world.own:
        for form in ("-cdxURL", "-wat"):
            output = run([*program, form, path])
            same([line for line in output.splitlines() if "Exception" in line], [])
    return COMMONS


def _gowarc(world: World) -> str:
    program = installing.go("github.com/internetarchive/gowarc/cmd/warc", "ia-warc", "v0.8.90")
    for path in world.own:
        run([program, "verify", path])
    return "0.8.90"


def _warchaeology(world: World) -> str:
    program = installing.go("github.com/nationallibraryofnorway/warchaeology/v5", "warchaeology")
    for path in (*world.warcs, *world.own):
        run([program, "validate", path])
    return run([program, "--version"]).split()[-1]


def _siegfried(world: World) -> str:
    program = installing.go("github.com/richardlehane/siegfried/cmd/sf", "sf", "v1.11.8")
    if not (Path.home() / "siegfried" / "default.sig").exists():
        raise installing.Unavailable("its signatures are not in the registry: sf -update fetches them")
    for path in world.own:
        run([program, path], expected="fmt/1281")
    return "1.11.8"


TOOLS = (
    Tool(name="warcio", source="PyPI", what="check WARC files", check=_warcio),
    Tool(name="fastwarc", source="PyPI", what="check WARC files", check=_fastwarc),
    Tool(name="cdxj-indexer", source="PyPI", what="same index as ours", check=_cdxj_indexer),
    Tool(name="jwarc", source="Maven", what="validate WARC files", check=_jwarc),
    Tool(name="jwarc", source="Maven", what="deduplicate against us (OutbackCDX)", check=_jwarc_dedupe),
    Tool(name="JHOVE", source="Maven", what="validate WARC files", check=_jhove),
    Tool(name="JWAT", source="Maven", what="validate WARC files", check=_jwat),
    Tool(name="webarchive-commons", source="Maven", what="CDX and WAT of WARC files", check=_commons),
    Tool(name="gowarc", source="Go", what="verify WARC files", check=_gowarc, is_slow=True),
    Tool(name="warchaeology", source="Go", what="validate WARC files", check=_warchaeology, is_slow=True),
    Tool(name="siegfried", source="Go", what="identify WARC files", check=_siegfried, is_slow=True),
)
