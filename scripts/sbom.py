"""Write the software bill of materials: python scripts/sbom.py [FILE]

CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/) as JSON, to standard output without FILE: every package of
constraints/run.txt with its version, its licence and the SHA-256 of each of its files, what depends on what, and
the browser files with their SHA-512. Licences and dependencies are read from the packages installed in .venv.
Nothing in it depends on the time or the machine, so two runs of the same sources are equal.
"""

import base64
import json
import re
import sys
import tomllib
import uuid
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints" / "run.txt"
BROWSER_FILES = ROOT / "src" / "webdepot" / "browser_files.toml"
_PINNED = re.compile(r"^([a-zA-Z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def main() -> int:
    text = json.dumps(bill(), indent=2, ensure_ascii=False) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
        print(f"Written: {sys.argv[1]}")
    else:
        print(text, end="")
    return 0


def bill() -> dict[str, object]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    reference = f"pkg:pypi/{project['name']}@{project['version']}"
    pinned = read_pinned(CONSTRAINTS)
    browser = tomllib.loads(BROWSER_FILES.read_text(encoding="utf-8"))["package"]
    components = [python_component(name, *facts) for name, facts in sorted(pinned.items())]
    components += [browser_component(package) for package in browser]
    body = {
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"expression": project["license"]}],
                "purl": reference,
            }
        },
        "components": components,
        "dependencies": dependencies(reference, project["dependencies"], pinned, browser),
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
    } | body


def read_pinned(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Name -> version and SHA-256 of its files. Packages for Windows are left out."""
    pinned: dict[str, tuple[str, list[str]]] = {}
    hashes: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := _PINNED.match(line):
            hashes = []
            if "win32" not in (match[3] or ""):
                pinned[canonical(match[1])] = (match[2], hashes)
        hashes += _HASH.findall(line)
    return pinned


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def python_component(name: str, version: str, hashes: list[str]) -> dict[str, object]:
    component: dict[str, object] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        # Several files (platforms), of which one is installed: so they are properties, not the component's hash.
        "properties": [{"name": "webdepot:file:sha256", "value": value} for value in hashes],
    }
    licence = licence_of(name)
    return component | ({"licenses": [licence]} if licence else {})


def licence_of(name: str) -> dict[str, object] | None:
    """The licence that the installed package states: an SPDX expression, or a name."""
    try:
        facts = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    if facts.get("License-Expression"):
        return {"expression": facts["License-Expression"]}
    classified = [
        line.rpartition(" :: ")[2]
        for line in facts.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    stated = " ".join((facts.get("License") or "").split())
    text = ", ".join(classified) or (stated if len(stated) < 100 else "")
    return {"license": {"name": text}} if text else None


def browser_component(package: dict[str, object]) -> dict[str, object]:
    name, version = str(package["name"]), str(package["version"])
    purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
    files = [
        {
            "type": "file",
            "bom-ref": f"{purl}#{file['path']}",
            "name": f"web/vendor/{file['name']}",
            "hashes": [sha512(file["integrity"])],
        }
        for file in package["file"]  # type: ignore[attr-defined]
    ]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [{"expression": package["license"]}],
        "hashes": [sha512(str(package["integrity"]))],
        "components": files,
    }


def sha512(integrity: str) -> dict[str, str]:
    return {"alg": "SHA-512", "content": base64.b64decode(integrity.removeprefix("sha512-")).hex()}


def dependencies(
    reference: str,
    direct: list[str],
    pinned: dict[str, tuple[str, list[str]]],
    browser: list[dict[str, object]],
) -> list[dict[str, object]]:
    """The dependencies between the packages in the bill of materials."""

    def references(requirements: list[str]) -> list[str]:
        names = {canonical(re.split(r"[\s;<>=!~\[(@]", line, maxsplit=1)[0]) for line in requirements}
        return sorted(f"pkg:pypi/{name}@{pinned[name][0]}" for name in names if name in pinned)

    rows = []
    for name, (version, _) in sorted(pinned.items()):
        try:
            required = [line for line in metadata.requires(name) or [] if "extra ==" not in line]
        except metadata.PackageNotFoundError:
            required = []
        rows.append({"ref": f"pkg:pypi/{name}@{version}", "dependsOn": references(required)})
    npm = [str(browser_component(package)["bom-ref"]) for package in browser]
    return [{"ref": reference, "dependsOn": references(direct) + npm}, *rows]


if __name__ == "__main__":
    sys.exit(main())
