# shellcheck shell=bash
# Packages of the distribution. Sourced by setup.sh.

as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

# apt <argument>…: apt-get, which waits for its turn: a fresh machine upgrades itself while its owner types the first command. By
# itself apt-get waits for dpkg's lock alone, and not for those of its lists and of what it downloads.
apt() {
  local patience=600 status said
  said=$(mktemp)
  while :; do
    status=0
    as_root env LC_ALL=C apt-get -o "DPkg::Lock::Timeout=$patience" -o Acquire::Retries=3 "$@" 2>"$said" || status=$?
    cat "$said" >&2
    if [ "$status" = 0 ] || [ "$patience" -le 0 ] || ! grep -q 'Could not get lock' "$said"; then break; fi
    sleep 2
    patience=$((patience - 2))
  done
  rm -f "$said"
  return "$status"
}

may_install() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

update_package_lists() {
  [ "$(id -u)" = 0 ] || sudo -v # asks for a password now, not below a line that counts
  logged apt-update apt update -qq ||
    say "some of the package lists are out of reach; going on with the others"
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

is_offered() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

# The packages of one release of Boost.
boost_packages() { echo "libboost$1-dev" "libboost-filesystem$1-dev" "libboost-json$1-dev"; }

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
  for package in g++ cmake ninja-build ccache libcli11-dev libfmt-dev libspdlog-dev libtomlplusplus-dev libssl-dev catch2 zlib1g-dev libxxhash-dev \
    liblz4-dev libzstd-dev python3-dev python3-venv git ca-certificates; do
    is_installed "$package" || echo "$package"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null; then
    say "this is not Debian or Ubuntu: g++ >= 12, CMake >= 3.22, Ninja, Boost >= 1.81, CLI11, fmt, spdlog, toml++, OpenSSL 3, zlib, Catch2"
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
  may_install || fail "packages are missing, and installing them needs root or sudo"
  say "asking the distribution for what is missing"
  update_package_lists
  if [ -z "$boost" ]; then
    boost=$(boost_release is_offered)
    [ -n "$boost" ] || fail "no Boost from 1.81 on in this distribution: Debian 12, Debian 13 or Ubuntu 24.04 is needed"
    missing+=" $(boost_packages "$boost")"
  fi
  # shellcheck disable=SC2086  # a list of words
  {
    quietly apt apt install -y -q --no-install-recommends $missing
    finish "installed" $missing
  }
}

# Debian and Ubuntu start a service when its package is installed; tests start their own, and nothing else should listen.
without_starting_services() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'as_root rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
    as_root chmod 755 $policy
  fi
  "$@"
)

# What scripts/lint needs (shellcheck), what tests/package needs (shells, readers of manual pages, package tools), what tests/cli shows
# runs in (script is in bsdutils), and for root what tests/cluster needs, which only root can run.
test_packages() {
  echo shellcheck zsh fish mandoc dpkg-dev file less tmux bsdutils
  [ "$(id -u)" != 0 ] || echo openssh-client openssh-server iproute2 nftables e2fsprogs mount slurm-wlm munge
}

# What the fuzzers need, where it is offered: clang, and its runtime in a package of its own; and clang-tidy.
clang_packages() {
  local package
  for package in clang libclang-rt-dev clang-tidy; do
    if is_installed "$package" || is_offered "$package"; then echo "$package"; fi
  done
}

# install_test_packages <package>…: those that are missing, where they can be had.
install_test_packages() {
  local package missing=()
  if ! command -v apt-get >/dev/null; then
    finish "skipped, and so are the tests that need them: this is not Debian or Ubuntu"
    return
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    finish "all are installed"
    return
  fi
  if ! may_install; then
    finish "skipped, and so are the tests that need them: root or sudo could install ${missing[*]}"
    return
  fi
  update_package_lists
  without_starting_services quietly apt-tests apt install -y -q --no-install-recommends "${missing[@]}"
  finish "installed ${missing[*]}"
}
