#!/usr/bin/env bash
# Installs what `make` needs: system packages from Debian where they are missing, .venv, and the pinned browser files.
# Usage: [PYTHON=/path/to/python] scripts/setup.sh run|test
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-run}

need_debian() { # need_debian PACKAGE...: those not installed yet, with one apt-get call
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

find_python() { # Debian's own first: it is compiled with the help of profiles, which takes a seventh off a harvest's processor time
  local one
  for one in "${PYTHON:-}" /usr/bin/python3.11 "$(command -v python3.11)" "$(command -v python3)"; do
    [ -n "$one" ] && "$one" -c 'import venv, ensurepip' 2>/dev/null && echo "$one" && return 0
  done
  return 1
}

python=$(find_python) || { need_debian python3 python3-venv; python=$(find_python); }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Webdepot needs Python 3.11 or later; this is $("$python" --version)." >&2; exit 1; }

install() { # install WHAT: into .venv, with every version pinned
  echo "Installing $1 into .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e "$2"
}

# pywb replays our containers in one test; it wants older libraries than ours, so it has an environment of its own.
install_pywb() {
  [ -x .pywb/bin/wayback ] && return 0
  "$python" -m venv --without-pip .pywb &&
    .venv/bin/python -m pip --python .pywb/bin/python install --quiet --disable-pip-version-check 'pywb==2.10.0' 'setuptools<81' ||
    echo "pywb could not be installed; the test that replays with it will be skipped." >&2
}

[ -x .venv/bin/python ] || "$python" -m venv .venv
if [ "$part" = run ]; then
  install "Webdepot" .
  .venv/bin/python scripts/vendor.py
else
  need_debian chromium fonts-dejavu-core nginx-light nsd
  # Side by side: most of the time is spent waiting for what is fetched.
  .venv/bin/python scripts/vendor.py --tests &
  vendor=$!
  install_pywb &
  install "Webdepot and the tools of its tests" '.[dev]'
  wait "$vendor"
  wait
fi
