#!/bin/sh
# Makes .venv with what requirements.txt names and with taas-run, unless the environment has torch and taas-run already.
#
#   PYTHON=python3.12            the interpreter (default python3)
#   TAAS_RUN_PACKAGE=a.whl       where pip takes taas-run from: a wheel, or a clone of its repository to compile;
#                                by default it is the taas-run in PATH, or that of the clone around this folder
#   FRESH=1                      makes .venv in any case
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
clone=$(cd ../../.. && pwd)

fail() {
  echo "setup: $*" >&2
  exit 2
}

has_packages() { "$1" -c 'import numpy, torch' 2>/dev/null; }

newest_wheel() {
  # shellcheck disable=SC2012  # names of wheels have no spaces
  ls -t "$clone"/dist/taas_run-*.whl 2>/dev/null | head -n 1
}

chosen=${FRESH:-}${TAAS_RUN_PACKAGE:-}
if [ -z "$chosen" ] && [ -e .venv/ready ] && [ -z "$(find requirements.txt -newer .venv/ready)" ]; then
  echo ".venv is up to date"
  exit
fi
command -v "$python" >/dev/null || fail "no $python here: on Debian and Ubuntu, apt install python3-venv"
if [ -z "$chosen" ] && [ ! -e .venv/ready ] && command -v taas-run >/dev/null && has_packages "$python"; then
  echo "torch and taas-run are here already"
  exit
fi

package=${TAAS_RUN_PACKAGE:-}
program=$(command -v taas-run) || program=
[ -n "$package$program" ] || package=$(newest_wheel)
[ -n "$package$program" ] || program=$clone/build/release/bin/taas-run
[ -n "$package" ] || [ -x "$program" ] || fail "no taas-run here: put it into PATH, name a wheel or a clone of its" \
  "repository with TAAS_RUN_PACKAGE, or run scripts/quickstart in the clone around this folder"
[ -z "$package" ] || [ -e "$package" ] || fail "TAAS_RUN_PACKAGE=$package: there is no such wheel or folder"
"$python" -c 'import ensurepip' 2>/dev/null ||
  fail "$python cannot make environments: on Debian and Ubuntu, apt install python3-venv"

"$python" -m venv .venv
echo "installing $(xargs <requirements.txt) into .venv"
.venv/bin/python -m pip install --quiet -r requirements.txt
if [ -n "$package" ]; then
  rm -f .venv/bin/taas-run # which may be a link
  .venv/bin/python -m pip install --quiet --force-reinstall "$package"
elif [ ! -x .venv/bin/taas-run ]; then
  ln -sfn "$program" .venv/bin/taas-run
fi
.venv/bin/taas-run --version >/dev/null || fail ".venv/bin/taas-run does not start"
touch .venv/ready
echo ".venv is ready, with ${package:-$program}"
