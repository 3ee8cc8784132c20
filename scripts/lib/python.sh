# shellcheck shell=bash
# A Python environment with torch. Sourced by setup.sh, which says where $venv is.

oldest_torch=2.11
marker=made-by-taas-run # a file in the environments that these scripts may make anew

# True when an interpreter has a torch that libtaas can be built with. Importing it would take seconds.
has_torch() {
  [ -n "$1" ] && "$1" - "$oldest_torch" 2>/dev/null <<'PYTHON'
import importlib.metadata, sys
number = lambda text: tuple(int(part) for part in text.split("+")[0].split(".")[:2])
sys.exit(number(importlib.metadata.version("torch")) < number(sys.argv[1]))
PYTHON
}

# interpreter <word or path>: where it is, as an absolute path; nothing when there is none.
interpreter() {
  case $1 in
    '') ;;
    */*) [ ! -x "$(absolute "$1")" ] || absolute "$1" ;;
    *) type -P "$1" ;;
  esac
}

# The interpreter that the caller names, or one of the caller's that has torch; nothing when there is none.
callers_python() {
  local python
  if [ -n "${TAAS_PYTHON:-}" ]; then
    python=$(interpreter "$TAAS_PYTHON")
    [ -n "$python" ] || fail "TAAS_PYTHON=$TAAS_PYTHON: there is no such interpreter"
    has_torch "$python" || fail "TAAS_PYTHON=$TAAS_PYTHON has no torch >= $oldest_torch"
    echo "$python"
    return
  fi
  for python in "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python}" "$(interpreter python3)"; do
    if has_torch "$python"; then
      echo "$python"
      return
    fi
  done
}

# environment_is_ready <interpreter>: true when $venv has torch, and it is that interpreter's, where one is named.
environment_is_ready() {
  has_torch "$venv/bin/python" || return
  [ -z "$1" ] || [ "$1" = "$venv/bin/python" ] || [ "$1" = "$(cat "$venv/borrowed-from" 2>/dev/null)" ]
}

# True for a folder that these scripts may remove: it is empty, or they made it.
is_ours() { [ -z "$(ls -A "$1")" ] || [ -e "$1/$marker" ] || [ -e "$1/borrowed-from" ]; }

# Fails unless $venv may be made anew.
check_ownership() {
  local folder
  if [ -e "$venv" ] && [ ! -d "$venv" ]; then fail "$venv is not a folder: name another one with TAAS_VENV"; fi
  for folder in "$venv" "$venv.before"; do
    [ ! -d "$folder" ] || is_ours "$folder" || fail "$folder has no torch >= $oldest_torch and was not made by these \
scripts, so they will not replace it: install torch into it, move it away, or name another folder with TAAS_VENV"
  done
}

# Puts the environment that was there back in its place, where the new one was not finished.
restore_environment() {
  [ -d "$venv.before" ] || return 0
  rm -rf "$venv"
  mv "$venv.before" "$venv"
}

# make_environment <interpreter with torch, or nothing>: a new $venv. Its own files name its path, so that it has to be made in
# its place: the one that was there steps aside until the new one is whole.
make_environment() {
  check_ownership
  rm -rf "$venv.before" # of a run that was killed
  [ ! -d "$venv" ] || mv -T "$venv" "$venv.before"
  trap restore_environment EXIT
  quietly venv "${1:-python3}" -m venv "$venv"
  touch "$venv/$marker"
  if [ -n "$1" ]; then
    say "using the torch of $1"
    borrow_torch "$1"
  else
    say "downloading torch into $venv (several GB unpacked, a minute or two)"
    quietly torch "$venv/bin/python" -m pip install --progress-bar off -r scripts/requirements.txt
  fi
  trap - EXIT
  rm -rf "$venv.before"
}

# add_folder <name> <folder>: Python in $venv finds what is in the folder, behind its own packages.
add_folder() {
  local packages
  packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$2" >"$packages/$1.pth"
}

# Makes the environment see another interpreter's torch. That one stays as it is: what tests need goes into our own.
borrow_torch() {
  local packages
  packages=$("$1" -c 'import importlib.util as u, pathlib as p; print(p.Path(u.find_spec("torch").origin).parents[1])')
  add_folder borrowed_torch "$packages"
  echo "$1" >"$venv/borrowed-from"
}

# What the package `taas` is built with and imports.
add_package_requirements() {
  "$venv/bin/python" -c "import cloudpickle, cyclonedx, nanobind, scikit_build_core" 2>/dev/null ||
    quietly package "$venv/bin/python" -m pip install --progress-bar off --require-hashes -r scripts/requirements-package.txt
}

prepare_python() {
  local named=
  # A caller's choice is judged before anything is made; without one, an environment that is there is good enough.
  [ -z "${TAAS_PYTHON:-}" ] || named=$(callers_python) || exit
  if environment_is_ready "$named"; then
    add_package_requirements
    finish "$venv has torch"
    return
  fi
  [ "$named" != "$venv/bin/python" ] || fail "TAAS_PYTHON=$TAAS_PYTHON lies in the environment that would be made"
  [ -n "$named" ] || named=$(callers_python) || exit
  make_environment "$named"
  add_package_requirements
  finish
}

# From here on `python3` is the environment's, for cmake, for tests and for the programs that taas-run starts.
activate_python() {
  export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
  unset PYTHONHOME
}
