# shellcheck shell=bash
# What the scripts share: the steps on the screen, the distribution's packages, a Python environment with torch, a build.
# Sourced by them with the source folder as working directory.
#
#   TAAS_PYTHON   an interpreter that has torch already: its torch is used, nothing is installed into it
#   TAAS_VENV     the Python environment (default .venv)      TAAS_BUILD   the build folders' parent (default build)
#   TAAS_JOBS     compilers at a time (default: the cores, but no more than memory allows)

venv=${TAAS_VENV:-$PWD/.venv}
builds=${TAAS_BUILD:-$PWD/build}
steps=0
step=0
step_started=0

say() { printf '      %s\n' "$*"; }

fail() {
  printf '\nerror: %s\n' "$*" >&2
  exit 1
}

# Starts a step and says its number; the last line of a step is its time.
begin() {
  step=$((step + 1))
  step_started=$SECONDS
  printf '[%d/%d] %s\n' "$step" "$steps" "$*"
}

finish() { say "${*:-done} ($((SECONDS - step_started)) s)"; }

# Runs a command whose output matters only when it fails.
quietly() {
  local log=$builds/$1.log
  shift
  mkdir -p "$builds"
  "$@" >"$log" 2>&1 </dev/null || {
    tail -n 30 "$log" >&2
    fail "'$*' failed; all of its output is in $log"
  }
}

# --- packages of the distribution ---

as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

is_offered() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

# The packages of one release of Boost. Boost.Process is a compiled library from 1.86 on.
boost_packages() {
  echo "libboost$1-dev" "libboost-filesystem$1-dev" "libboost-json$1-dev"
  case $1 in 1.81 | 1.83) ;; *) echo "libboost-process$1-dev" ;; esac
}

# boost_release is_installed|is_offered: the first release of Boost of which that is true for all packages.
boost_release() {
  local release package
  for release in 1.81 1.83 1.88 1.90; do
    for package in $(boost_packages "$release"); do
      "$1" "$package" || continue 2
    done
    echo "$release"
    return
  done
}

missing_packages() {
  local package
  for package in g++ cmake ninja-build ccache libcli11-dev libfmt-dev libssl-dev catch2 zlib1g-dev libxxhash-dev \
    liblz4-dev libzstd-dev python3-dev python3-venv git ca-certificates; do
    is_installed "$package" || echo "$package"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null; then
    say "this is not Debian or Ubuntu: g++ >= 12, CMake >= 3.22, Ninja, Boost >= 1.81, CLI11, fmt, OpenSSL 3, zlib, Catch2"
    finish "and Python >= 3.10 with venv have to be there already"
    return
  fi
  local missing boost
  missing=$(missing_packages)
  boost=$(boost_release is_installed)
  if [ -z "$missing" ] && [ -n "$boost" ]; then
    finish "all are installed"
    return
  fi
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || fail "packages are missing, and installing them needs root or sudo"
  say "asking the distribution for what is missing"
  as_root apt-get update -qq >/dev/null </dev/null || say "some of the package lists are out of reach; going on with the others"
  if [ -z "$boost" ]; then
    boost=$(boost_release is_offered)
    [ -n "$boost" ] || fail "no Boost from 1.81 on in this distribution: Debian 12, Debian 13 or Ubuntu 24.04 is needed"
    missing+=" $(boost_packages "$boost")"
  fi
  # shellcheck disable=SC2086  # a list of words
  {
    quietly apt as_root apt-get install -y -q --no-install-recommends -o Acquire::Retries=3 $missing
    finish "installed" $missing
  }
}

# --- packages for tests ---

# Debian and Ubuntu start a service when its package is installed; tests start their own, and nothing else should listen.
without_starting_services() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
  fi
  "$@"
)

# What tests/cluster needs, and the shells, readers of manual pages and package tools of tests/package. The former take root, so
# that nobody else is asked for anything; the latter are skipped without.
install_test_packages() {
  local package missing=()
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    finish "skipped, and so are the tests that need them: they take root, and Debian or Ubuntu"
    return
  fi
  for package in openssh-client openssh-server iproute2 nftables slurm-wlm munge zsh fish mandoc dpkg-dev file; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    finish "all are installed"
    return
  fi
  as_root apt-get update -qq >/dev/null </dev/null || say "some of the package lists are out of reach; going on with the others"
  without_starting_services quietly apt-tests as_root apt-get install -y -q --no-install-recommends \
    -o Acquire::Retries=3 "${missing[@]}"
  finish "installed ${missing[*]}"
}

# --- Python with torch ---

oldest_torch=2.11

# True when an interpreter has a torch that libtaas can be built with. Importing it would take seconds.
has_torch() {
  [ -n "$1" ] && "$1" - "$oldest_torch" 2>/dev/null <<'PYTHON'
import importlib.metadata, sys
number = lambda text: tuple(int(part) for part in text.split("+")[0].split(".")[:2])
sys.exit(number(importlib.metadata.version("torch")) < number(sys.argv[1]))
PYTHON
}

# The interpreter of the caller that has torch, if there is one.
callers_python() {
  local python
  for python in "${TAAS_PYTHON:-}" "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python}" python3; do
    if has_torch "$python"; then
      command -v "$python"
      return
    fi
  done
}

# True when the environment has torch, and it is the one that the caller asks for.
environment_is_ready() {
  has_torch "$venv/bin/python" || return
  [ -z "${TAAS_PYTHON:-}" ] || [ "$TAAS_PYTHON" = "$(cat "$venv/borrowed-from" 2>/dev/null)" ]
}

# Makes the environment see another interpreter's torch. That one stays as it is: what tests need goes into our own.
borrow_torch() {
  local packages
  packages=$("$1" -c 'import importlib.util as u, pathlib as p; print(p.Path(u.find_spec("torch").origin).parents[1])')
  echo "$packages" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed_torch.pth"
  echo "$1" >"$venv/borrowed-from"
}

# What the package `taas` is built with and imports.
add_package_requirements() {
  "$venv/bin/python" -c "import cloudpickle, nanobind, scikit_build_core" 2>/dev/null ||
    quietly package "$venv/bin/python" -m pip install --progress-bar off -r scripts/requirements-package.txt
}

prepare_python() {
  if environment_is_ready; then
    add_package_requirements
    finish "$venv has torch"
    return
  fi
  local origin
  origin=$(callers_python)
  [ -z "${TAAS_PYTHON:-}" ] || [ "$TAAS_PYTHON" = "$origin" ] || fail "TAAS_PYTHON=$TAAS_PYTHON has no torch >= $oldest_torch"
  quietly venv "${origin:-python3}" -m venv --clear "$venv"
  if [ -n "$origin" ]; then
    say "using the torch of $origin"
    borrow_torch "$origin"
  else
    say "downloading torch into $venv (several GB unpacked, a minute or two)"
    quietly torch "$venv/bin/python" -m pip install --progress-bar off -r scripts/requirements.txt
  fi
  add_package_requirements
  finish
}

# From here on `python3` is the environment's, for cmake, for tests and for the programs that taas-run starts.
activate_python() {
  export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
  unset PYTHONHOME
}

# --- building ---

# A file that includes torch takes about 2 GB to compile.
build_jobs() {
  local cores kilobytes limit jobs
  cores=$(nproc)
  kilobytes=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [ "$limit" != max ] && [ $((limit / 1024)) -lt "$kilobytes" ]; then kilobytes=$((limit / 1024)); fi
  jobs=$((kilobytes / 2000000))
  [ "$jobs" -lt "$cores" ] || jobs=$cores
  [ "$jobs" -gt 0 ] || jobs=1
  echo "${TAAS_JOBS:-$jobs}"
}

# build <preset> [target]…
build() {
  local preset=$1
  shift
  quietly "configure-$preset" cmake --preset "$preset" -B "$builds/$preset" "-DTAAS_PYTHON=$venv/bin/python"
  cmake --build "$builds/$preset" --parallel "$(build_jobs)" ${1:+--target "$@"} </dev/null ||
    fail "the build of $preset failed"
}
