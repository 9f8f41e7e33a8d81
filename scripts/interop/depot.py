"""Bags, OCFL and METS: do validators and readers of others accept them?"""

from pathlib import Path

import installing
from running import Tool, python, run, same, version_of
from world import World

OCFL_JAVA = "2.2.3"
_OCFL_JAVA_PROGRAM = """
import io.ocfl.core.*; import io.ocfl.core.extension.storage.layout.config.*; import java.nio.file.*;
public class Check { public static void main(String[] args) throws Exception {
  var repository = new OcflRepositoryBuilder().defaultLayoutConfig(new HashedNTupleLayoutConfig())
    .storage(storage -> storage.fileSystem(Path.of(args[0]))).workDir(Files.createTempDirectory("ocfl")).build();
  for (String id : (Iterable<String>) repository.listObjectIds()::iterator) {
    var results = repository.validateObject(id, true);
    System.out.println("OBJECT " + results.getErrors() + " " + repository.describeObject(id).getHeadVersionNum()); } } }
"""


def _bagit(world: World) -> str:
    python("import bagit, sys; bagit.Bag(sys.argv[1]).validate()", world.folder / "bag")
    return version_of("bagit")


def _ocfl_py(world: World) -> str:
    code = "import ocfl, sys; assert ocfl.StorageRoot(root=sys.argv[1]).validate(validate_objects=True)"
    for root in _roots(world):
        python(code, root)
    return version_of("ocfl-py")


def _roots(world: World) -> tuple[Path, ...]:
    """An exported object in its storage root, and a depot with objects of several versions."""
    return world.folder / "ocfl", world.depot


def _ocfl_java(world: World) -> str:
    libraries = installing.maven("ocfl-java", f"io.ocfl:ocfl-java-core:{OCFL_JAVA}")
    program = world.folder / "ocfl-java" / "Check.java"
    program.parent.mkdir()
    program.write_text(_OCFL_JAVA_PROGRAM)
    output = run(["java", "-cp", libraries, program, world.depot])
    lines = [line for line in output.splitlines() if line.startswith("OBJECT")]
    same(sorted(lines), ["OBJECT [] v1", "OBJECT [] v2"])
    return OCFL_JAVA


def _rocfl(world: World) -> str:
    program = installing.crate("rocfl", "--no-default-features")
    for root in _roots(world):
        run([program, "-r", root, "validate"])
    return run([program, "--version"]).split()[-1]


def _ocfl_tools(world: World) -> str:
    program = installing.go("github.com/srerickson/ocfl-tools/cmd/ocfl", "ocfl")
    run([program, "ls", "--root", world.depot])
    return "latest"


def _metsrw(world: World) -> str:
    """Archivematica's reader of METS; it expects its own divisions, so it finds no files in ours."""
    (document,) = (world.folder / "bag" / "data").rglob("mets.xml")
    code = "import metsrw, sys; metsrw.METSDocument.fromfile(sys.argv[1])"
    python(code, document)
    return version_of("metsrw")


TOOLS = (
    Tool(name="bagit", source="PyPI", what="validate a bag", check=_bagit),
    Tool(name="ocfl-py", source="PyPI", what="validate OCFL roots", check=_ocfl_py),
    Tool(name="metsrw", source="PyPI", what="read METS of a package", check=_metsrw),
    Tool(name="ocfl-java", source="Maven", what="validate an OCFL root", check=_ocfl_java),
    Tool(name="rocfl", source="crates", what="validate OCFL roots", check=_rocfl, is_slow=True),
    Tool(name="ocfl-tools", source="Go", what="list an OCFL root", check=_ocfl_tools, is_slow=True),
)
