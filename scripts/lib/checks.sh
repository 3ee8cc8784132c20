# shellcheck shell=bash
# What ./scripts/test runs besides building. Sourced after setup.sh; each check that fails is added to `failures`, and how to
# run it alone to `reruns`.

failures=()
reruns=()

# install_what_there_is <frameworks|pipelines>: what these tests need of scripts/requirements-<name>.txt, beside torch and numpy as
# they are. A pinned version that is there is not asked for again. What cannot be had, as on a Python that it has no wheel for, is
# left out: its tests are skipped; in CI they fail.
install_what_there_is() {
  local package list=scripts/requirements-$1.txt kept=$builds/kept-versions.txt missing=()
  mkdir -p "$builds"
  python3 -m pip list --format freeze 2>/dev/null | grep -E '^(torch|numpy)==' >"$kept"
  if install_pinned "$1" -r "$list" -c "$kept"; then
    finish "all are installed"
    return
  fi
  while read -r package; do
    install_pinned "$1" "$package" -c "$kept" || missing+=("$package")
  done < <(grep -v '^#' "$list")
  finish "not to be had here: ${missing[*]}; why is in $builds/$1.log"
}

# install_pinned <name of the log> <what pip is to install>
install_pinned() { logged "$1" python3 -m pip install --progress-bar off "${@:2}"; }

# lint: what linters say of the sources.
lint() {
  if ! logged lint ./scripts/lint; then
    failures+=("linters")
    reruns+=("./scripts/lint --fix")
    head -n 60 "$builds/lint.log"
  fi
}

# suite <preset> <option of ctest>…: runs tests of a build, three at a time, and shows the output of those that fail.
suite() {
  ctest --test-dir "$builds/$1" --output-on-failure --no-tests=error --parallel 3 "${@:2}" </dev/null
}

# note_failures <preset>: what failed in the last run of a build's tests.
note_failures() {
  local name only=${PYTEST_ADDOPTS:+PYTEST_ADDOPTS="'$PYTEST_ADDOPTS' "}
  while IFS=: read -r _ name; do
    failures+=("$name")
    reruns+=("${only}ctest --test-dir $builds/$1 -R '^${name//./\\.}\$' --output-on-failure")
  done <"$builds/$1/Testing/Temporary/LastTestsFailed.log"
}

# What may be skipped in CI: what needs a GPU, what belongs to the full run, and what the oldest distribution cannot have.
expected_skips='GPU|gpu|TAAS_FULL|no Python from 3[.]12'

# say_skipped <preset> <log of ctest>: how many suites and test cases were skipped, and why.
say_skipped() {
  local suites cases line unexpected=
  suites=$(sed -n 's/^.* \([^ ]*\) \.*\*\*\*Skipped.*$/\1/p' "$2")
  cases=$(sed -n 's/^SKIPPED \[\([0-9]*\)\] \([^ ]*\): \(.*\)$/\1 \3 (\2)/p' "$builds/$1/Testing/Temporary/LastTest.log")
  [ -n "$suites$cases" ] || return 0
  say "skipped suites: $(grep -c . <<<"$suites"), skipped test cases: $(awk '{ sum += $1 } END { print sum + 0 }' <<<"$cases")"
  while IFS= read -r line; do
    [ -z "$line" ] || say "  $line"
    [ -z "$line" ] || [[ $line =~ $expected_skips ]] || unexpected=1
  done <<<"$suites"$'\n'"$cases"
  if [ -n "${CI:-}" ] && [ -n "$unexpected" ]; then
    failures+=("skipped tests")
    reruns+=("see above; in CI only what matches \"$expected_skips\" may be skipped")
  fi
}

# say_slowest <log of ctest>: the ten suites that took longest.
say_slowest() {
  say "the slowest suites, in seconds:"
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*$/\2 \1/p' "$1" | sort -rn | head -n 10 |
    while read -r seconds name; do say "$(printf '%8.1f  %s' "$seconds" "$name")"; done
}

# run_suites <preset> <option of ctest>…: tests of a build, with what was skipped, what failed and what took long.
run_suites() {
  local log=$builds/$1-tests.log
  suite "$@" 2>&1 | tee "$log" || note_failures "$1"
  say_skipped "$1" "$log"
  say_slowest "$log"
}

# What the suites of the gate run: of pytest's the tests with that mark, each fault once, few seeds.
select_gate() { export PYTEST_ADDOPTS="-m gate" TAAS_REPEATS=1 TAAS_SEEDS=2000; }

# under_sanitizer <preset>: the launcher's own suites. Only the count is shown.
under_sanitizer() {
  configure "$1"
  build "$1"
  say "built ($((SECONDS - step_started)) s)"
  if TAAS_REPEATS=${TAAS_REPEATS:-1} logged "$1-tests" suite "$1"; then
    finish "$(grep -c ' Passed ' "$builds/$1-tests.log") suites are clean"
  else
    note_failures "$1"
    tail -n 100 "$builds/$1-tests.log"
    finish "FAILED; all of the output is in $builds/$1-tests.log"
  fi
}

# tidy: what clang-tidy finds in the launcher. It reads the files in the batches in which they are compiled.
tidy() {
  if ! command -v run-clang-tidy >/dev/null; then
    [ -z "${CI:-}" ] || { failures+=("clang-tidy") && reruns+=("apt-get install clang-tidy"); }
    finish "skipped: no clang-tidy here"
    return
  fi
  configure tidy
  local command=(run-clang-tidy -quiet -p "$builds/tidy" -j "$(build_jobs)" "^(?!.*nanobind)")
  if logged tidy "${command[@]}"; then
    finish "nothing was found"
  else
    failures+=("clang-tidy")
    reruns+=("${command[*]}")
    grep -A 5 'error: ' "$builds/tidy.log" | head -n 100
    finish "FAILED; all of the output is in $builds/tidy.log"
  fi
}

# True when clang can link a fuzzer: distributions ship its runtime in a package of its own.
has_fuzzer_runtime() {
  command -v clang++ >/dev/null && echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++ -x c++ -fsanitize=fuzzer - -o /dev/null 2>/dev/null
}

# fuzz <seconds>: every fuzzer for that long, from the committed corpus. What it finds stays in the build folder.
fuzz() {
  if ! has_fuzzer_runtime; then
    finish "skipped: no clang with libFuzzer here; the corpus is replayed with the other tests"
    return
  fi
  local corpora=(tests/fuzz/corpus/*/) corpus name fuzzer
  corpora=("${corpora[@]%/}")
  corpora=("${corpora[@]##*/}")
  configure fuzz
  build fuzz "${corpora[@]/%/_fuzzer}"
  say "built ($((SECONDS - step_started)) s)"
  for name in "${corpora[@]}"; do
    corpus=$builds/fuzz/corpus/$name
    fuzzer=("$builds/fuzz/bin/${name}_fuzzer" "-max_total_time=$1" -timeout=10 -rss_limit_mb=1024 \
      -malloc_limit_mb=256 "-artifact_prefix=$builds/fuzz/$name-" "$corpus" \
      "tests/fuzz/corpus/$name")
    mkdir -p "$corpus"
    if logged "fuzz-$name" "${fuzzer[@]}"; then
      say "$name: $(tail -n 1 "$builds/fuzz-$name.log")"
    else
      failures+=("fuzzer $name")
      reruns+=("${fuzzer[*]}")
      tail -n 40 "$builds/fuzz-$name.log"
    fi
  done
  finish
}

# Says how long everything took, and ends the script with the names of what failed and the commands that run it alone, if
# anything did.
conclude() {
  local i
  say "all of it: $SECONDS s"
  ((${#failures[@]} > 0)) || return 0
  printf '\nfailed: %s\n' "${failures[*]}" >&2
  for i in "${!failures[@]}"; do printf '  %s: %s\n' "${failures[i]}" "${reruns[i]}" >&2; done
  exit 1
}
