#!/usr/bin/env bash
# Installs everything `make` needs: missing Debian packages, .venv, and the pinned browser files.
# Usage: [PYTHON=/path/to/python] scripts/setup.sh run|test|fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-run}

need_debian() { # need_debian PACKAGE...: install the missing ones with one apt-get call
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  command -v apt-get >/dev/null || { echo "Please install: ${missing[*]}" >&2; exit 1; }
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Please install as root: apt-get install ${missing[*]}" >&2; exit 1; }
    sudo=sudo
  fi
  echo "Installing from Debian: ${missing[*]}"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

find_python() { # Debian's Python first: it is built with profile-guided optimisation, and harvests use 15 % less CPU time
  local one
  for one in "${PYTHON:-}" /usr/bin/python3.11 "$(command -v python3.11)" "$(command -v python3)"; do
    [ -n "$one" ] && "$one" -c 'import venv, ensurepip' 2>/dev/null && echo "$one" && return 0
  done
  return 1
}

python=$(find_python) || { need_debian python3 python3-venv; python=$(find_python); }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Webdepot needs Python 3.11 or later; this is $("$python" --version)." >&2; exit 1; }

# pip_install PYTHON ARGUMENT...: install packages whose SHA-256 is in constraints/, and no others. Those that exist only as
# source are built with the tools of constraints/build.txt, not with the newest ones.
pip_install() {
  local into=$1
  shift
  .venv/bin/python -m pip --python "$into" install --quiet --disable-pip-version-check --no-deps --no-build-isolation "$@"
}

install() { # install NAME LIST: the packages of constraints/LIST.txt, and Webdepot itself, into .venv
  echo "Installing $1 into .venv"
  pip_install .venv/bin/python --require-hashes --only-binary :all: -r constraints/build.txt
  pip_install .venv/bin/python --require-hashes -r "constraints/$2.txt"
  pip_install .venv/bin/python -e .
  local missing
  if missing=$(.venv/bin/python -m pip check | grep '^webdepot '); then
    echo "$missing" >&2
    echo "constraints/$2.txt does not match pyproject.toml. Run: make constraints" >&2
    exit 1
  fi
}

# One test replays our containers with pywb. It needs older libraries, so it has a separate environment.
install_pywb() {
  [ -x .pywb/bin/wayback ] && return 0
  "$python" -m venv --without-pip .pywb &&
    pip_install .pywb/bin/python --require-hashes --only-binary :all: -r constraints/build.txt &&
    pip_install .pywb/bin/python --require-hashes -r constraints/pywb.txt ||
    echo "pywb could not be installed; the test that replays with it will be skipped." >&2
}

# One test harvests DokuWiki where PHP is installed.
install_dokuwiki() {
  command -v php >/dev/null || return 0
  .venv/bin/python -m bench.fidelity --install dokuwiki ||
    echo "DokuWiki could not be installed; the test that harvests it will be skipped." >&2
}

[ -x .venv/bin/python ] || "$python" -m venv .venv
if [ "$part" = run ]; then
  install "Webdepot" run
  .venv/bin/python scripts/vendor.py
elif [ "$part" = fuzz ]; then # after `test`
  echo "Installing Atheris into .venv"
  pip_install .venv/bin/python --require-hashes --only-binary :all: -r constraints/fuzz.txt
else
  need_debian chromium fonts-dejavu-core nginx-light nsd
  # In parallel, because most of the time is spent on downloads.
  .venv/bin/python scripts/vendor.py --tests &
  vendor=$!
  install_pywb &
  install "Webdepot and its test tools" test
  install_dokuwiki
  wait "$vendor"
  wait
fi
