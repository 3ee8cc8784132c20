# shellcheck shell=bash
# What ./scripts/test runs besides building. Sourced after setup.sh; each check that fails is added to `failures`.

failures=()

# What tests/frameworks needs, beside torch and numpy as they are. A pinned version that is there is not asked for again. What
# cannot be had, as on a Python that it has no wheel for, is left out: its tests are skipped; in CI they fail.
install_frameworks() {
  local package kept=$builds/kept-versions.txt missing=()
  mkdir -p "$builds"
  python3 -m pip list --format freeze 2>/dev/null | grep -E '^(torch|numpy)==' >"$kept"
  if install_pinned -r scripts/requirements-frameworks.txt -c "$kept"; then
    finish "all are installed"
    return
  fi
  while read -r package; do
    install_pinned "$package" -c "$kept" || missing+=("$package")
  done <scripts/requirements-frameworks.txt
  finish "not to be had here: ${missing[*]}; why is in $builds/frameworks.log"
}

install_pinned() { python3 -m pip install --progress-bar off "$@" >"$builds/frameworks.log" 2>&1 </dev/null; }

# suite <preset> <tests at a time>: runs the tests of a build, and shows the output of those that fail.
suite() {
  ctest --test-dir "$builds/$1" --output-on-failure --no-tests=error --parallel "$2" </dev/null
}

# under_sanitizer <preset>: the launcher's own suites. Only the count is shown: the full run comes last.
under_sanitizer() {
  local log=$builds/$1-tests.log
  build "$1"
  if TAAS_REPEATS=${TAAS_REPEATS:-1} suite "$1" 2 >"$log" 2>&1; then
    finish "$(grep -c ' Passed ' "$log") suites are clean"
  else
    failures+=("$1")
    tail -n 100 "$log"
    finish "FAILED; all of the output is in $log"
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
  local corpora=(tests/fuzz/corpus/*/) corpus name log
  corpora=("${corpora[@]%/}")
  corpora=("${corpora[@]##*/}")
  build fuzz "${corpora[@]/%/_fuzzer}"
  for name in "${corpora[@]}"; do
    corpus=$builds/fuzz/corpus/$name
    log=$builds/fuzz-$name.log
    mkdir -p "$corpus"
    if "$builds/fuzz/bin/${name}_fuzzer" -max_total_time="$1" -timeout=10 -artifact_prefix="$builds/fuzz/$name-" \
      "$corpus" "tests/fuzz/corpus/$name" >"$log" 2>&1 </dev/null; then
      say "$name: $(tail -n 1 "$log")"
    else
      failures+=("fuzzer $name")
      tail -n 40 "$log"
    fi
  done
  finish
}
