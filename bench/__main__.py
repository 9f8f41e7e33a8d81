"""Run the benchmarks, each in its own process: `python -m bench [--quick] [--results FOLDER] [NAME...]`;
`make bench` runs all.

Each answers one question, compares with other programs in the same run, and prints ratios; its JSON is
written to bench/results/NAME.json.
"""

import argparse
import subprocess
import sys
from pathlib import Path

QUESTIONS = (
    "containers",
    "frontier",
    "harvest",
    "harvesters",
    "orders",
    "politeness",
    "several_portals",
    "storage_kills",
    "rebuild_kills",
    "opensearch_nodes",
    "browser",
    "access",
    "captures",
    "search",
    "formats",
    "depot",
    "exchange",
    "discovery",
    "curation",
    "many",
    "soak",
    "beside",
    "siege",
    "fidelity",
    "words",
    "whole",
    "simulation",
)
HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which: {', '.join(QUESTIONS)}; default: all"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a smoke test with little data; its figures are meaningless"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for the JSON files")
    options = parser.parse_args()
    if unknown := set(options.names) - set(QUESTIONS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}. Known: {', '.join(QUESTIONS)}")
    options.results.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.names or [question for question in QUESTIONS if (HERE / f"{question}.py").exists()]:
        print(f"\n=== {name} ===", flush=True)
        command = [sys.executable, "-m", f"bench.{name}", "--json", str(options.results / f"{name}.json")]
        if subprocess.run([*command, *(["--quick"] if options.quick else [])], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nFailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
