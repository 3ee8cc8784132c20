# shellcheck shell=bash
# Steps on the screen: what is done, how long it takes, that it goes on, and how it failed. Sourced by setup.sh, which says
# where $builds is.

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

# The last line of a log that says anything, cut to a width that fits a terminal.
last_line() { tail -n 5 "$1" 2>/dev/null | tr '\r' '\n' | grep . | tail -n 1 | cut -c1-90; }

# Says over and over how far a log is: every second in the same line of a terminal, every half minute in a file.
tick() {
  local log=$1 started=$SECONDS never
  exec {never}<> <(:) # nothing is ever to be read there: `read` sleeps without a process of its own
  if [ -t 1 ]; then
    while ! read -r -t 1 -u "$never"; do printf '\r\033[K      %d s  %s' $((SECONDS - started)) "$(last_line "$log")"; done
  else
    while ! read -r -t 30 -u "$never"; do say "$((SECONDS - started)) s  $(last_line "$log")"; done
  fi
}

# logged <name> <command>…: runs a command with its output in a log of that name, and says how far it is.
logged() {
  local log=$builds/$1.log ticker status=0
  shift
  mkdir -p "$builds"
  : >"$log"
  tick "$log" &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$ticker" 2>/dev/null
  wait "$ticker" 2>/dev/null || true
  [ ! -t 1 ] || printf '\r\033[K'
  return "$status"
}

# quietly <name> <command>…: a command whose output matters only when it fails, and which has to succeed.
quietly() {
  logged "$@" || {
    tail -n 30 "$builds/$1.log" >&2
    fail "'${*:2}' failed; all of its output is in $builds/$1.log"
  }
}
