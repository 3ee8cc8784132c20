# shellcheck shell=bash
# Configures and compiles. Sourced by setup.sh.

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

# configure <preset> [option]…
configure() {
  local preset=$1
  shift
  quietly "configure-$preset" cmake --preset "$preset" -B "$builds/$preset" "-DTAAS_PYTHON=$venv/bin/python" \
    "-DTAAS_WERROR=${TAAS_WERROR:-OFF}" "$@"
}

# build <preset> [target]…: what is configured. A terminal shows the build's own lines.
build() {
  local preset=$1
  shift
  local command=(cmake --build "$builds/$preset" --parallel "$(build_jobs)" ${1:+--target "$@"})
  if [ -t 1 ]; then
    "${command[@]}" </dev/null || fail "the build of $preset failed; again: ${command[*]}"
  elif ! logged "build-$preset" "${command[@]}"; then
    grep -A 40 '^FAILED: ' "$builds/build-$preset.log" | head -n 80 >&2 || tail -n 40 "$builds/build-$preset.log" >&2
    fail "the build of $preset failed; all of its output is in $builds/build-$preset.log; again: ${command[*]}"
  fi
}
