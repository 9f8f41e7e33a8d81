#!/usr/bin/env bash
# Writes constraints/*.txt: the version of every package that is installed, with the SHA-256 of each of its files,
# for all platforms. Versions stay as they are unless pyproject.toml or a constraints/*.in asks for others;
# with --upgrade the newest ones are taken.
# Usage: scripts/constraints.sh [--upgrade]
set -euo pipefail
cd "$(dirname "$0")/.."
upgrade=("$@")

python=.venv/bin/python
[ -x "$python" ] || python=python3
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
  --target "$tools" -r constraints/tools.txt

compile() { # compile NAME SOURCE...: write constraints/NAME.txt
  local name=$1
  shift
  "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
    --custom-compile-command "make constraints" "${upgrade[@]}" "$@" -o "constraints/$name.txt"
}

# The others take the versions of `test`, which has nearly all packages, so that the tests run with what is used.
compile test --extra dev pyproject.toml
compile run -c constraints/test.txt pyproject.toml
compile build -c constraints/test.txt constraints/build.in
compile pywb constraints/pywb.in
compile node constraints/node.in
compile fuzz constraints/fuzz.in
compile tools constraints/tools.in
