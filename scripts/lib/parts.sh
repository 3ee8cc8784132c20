# shellcheck shell=bash
# The parts of the full tier. Sourced by scripts/test.

# A part's name, about how many minutes it takes on two cores when everything is built, its suites as CTest's regular
# expression ("-" where it has none), and what it is.
parts_table=$(
  cat <<'TABLE'
launcher     5 ^(base|plan|command_line|run|sim|sim_scale|ui|proc|net|store|store_torch_client|store_same_answers|storage|node|launch|plan\..*|cli\..*|preload\..*|torch\.(hints|scripts)|notebook\..*|scripts\..*|configure|corpus|fuzz_.*)$ the launcher, its store, its screen, preloading and notebooks
clusters    35 ^cluster\. machines in network namespaces, and a SLURM
frameworks  10 ^frameworks\. Lightning, DeepSpeed, accelerate, transformers, TensorFlow, JAX; docs/examples
data         5 ^(data|sim_data|sim_data_stragglers|python\..*|torch\.(data|shared))$ data delivery
libtaas      3 ^(training|training\..*|parity\..*|train|train\..*|install\..*|store_cpp_client)$ libtaas and train, parity with Python's DDP, an installed libtaas
package      4 ^package\. wheels, Debian and conda packages, in empty environments
random      60 - the harnesses with seeds, many runs of each
sanitizers  12 - the launcher under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer
tidy         2 - clang-tidy over the launcher
fuzz         7 - all fuzzers
TABLE
)
parts=()
declare -A part_minutes part_suites part_is
while read -r name minutes suites words; do
  parts+=("$name")
  part_minutes[$name]=$minutes part_suites[$name]=$suites part_is[$name]=$words
done <<<"$parts_table"

list_parts() {
  local part
  printf '%-11s %7s  %s\n' part minutes 'what it is'
  for part in "${parts[@]}"; do printf '%-11s %7s  %s\n' "$part" "${part_minutes[$part]}" "${part_is[$part]}"; done
  printf '%-11s %7s  %s\n' all '' 'all of them, in this order'
}

# chosen <part>…: true when one of them is to be run.
chosen() {
  local each
  for each in "$@"; do [[ " ${run_parts[*]} " != *" $each "* ]] || return 0; done
  return 1
}

# Harnesses that draw what happens from a seed. Each says the seeds that failed, by which they are repeated.
random_harnesses() {
  local bin=$builds/release/bin python=$venv/bin/python
  export TAAS_RUN=$bin/taas-run TAAS_RANK_PROGRAM=$bin/rank_program PYTHONPATH=$builds/release/python
  harness simulation env TAAS_SEEDS=200000 "$bin/test_run" -w NoTests "every run ends*"
  harness simulated-cluster "$bin/test_sim" --runs 20000
  harness simulated-data "$bin/test_sim_data" --runs 20000
  harness random-stops "$python" tests/cli/random_stops.py --runs 300
  harness random-publishing "$python" tests/cli/random_publishing.py --runs 300
  harness random-nodes "$python" tests/cli/random_nodes.py --runs 100
  harness random-nodes-apart "$python" tests/cli/random_nodes.py --runs 100 --apart
  harness pipelines-of-libraries env TAAS_FULL=1 PYTHONHASHSEED=0 "$python" -m pytest -q -p no:cacheprovider tests/python/test_pipelines.py
  harness batches env TAAS_FULL=1 "$python" -m pytest -q -p no:cacheprovider tests/python/test_batches.py
  unset PYTHONPATH
  harness preloaded-libraries preloaded_libraries
  unset TAAS_RUN TAAS_RANK_PROGRAM
}

# Libraries that patch, trace or check what is imported, each once fresh and once preloaded. They have an environment of their
# own, beside the usual one; what this Python cannot have of them is left out.
preloaded_libraries() {
  local own=$builds/preloaded-libraries package
  python3 -m venv --clear "$own" || return
  python3 -c 'import site; print(site.getsitepackages()[0])' >"$(echo "$own"/lib/python3*/site-packages)/beside.pth"
  while read -r package; do
    "$own/bin/python" -m pip install --progress-bar off "$package" || echo "not to be had here: $package"
  done < <(grep -v '^#' scripts/requirements-preload.txt)
  PATH=$own/bin:$PATH "$own/bin/python" -m pytest -q -p no:cacheprovider tests/preload/test_libraries.py
}

# harness <name> <command>…: what fails is noted as a suite's failure is.
harness() {
  local name=$1 started=$SECONDS
  shift
  if logged "random-$name" "$@"; then
    say "$name: passed ($((SECONDS - started)) s)"
  else
    failures+=("$name")
    reruns+=("$*")
    tail -n 30 "$builds/random-$name.log"
    say "$name: FAILED ($((SECONDS - started)) s); all of its output is in $builds/random-$name.log"
  fi
}
