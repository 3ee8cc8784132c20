# shellcheck shell=bash
# The parts of the full tier. Sourced by scripts/test.

parts=(launcher clusters frameworks data libtaas package random sanitizers tidy fuzz)

# What a part is, and about how many minutes it takes on two cores when everything is built.
declare -A part_is=(
  [launcher]="all suites of the launcher, its store, its screen, preloading and notebooks"
  [clusters]="machines in network namespaces, and a SLURM"
  [frameworks]="Lightning, DeepSpeed, accelerate, transformers, TensorFlow, JAX; docs/examples"
  [data]="all suites of data delivery"
  [libtaas]="all suites of libtaas and train, parity with Python's DDP, an installed libtaas"
  [package]="wheels, Debian and conda packages, in empty environments"
  [random]="the harnesses with seeds, many runs of each"
  [sanitizers]="the launcher under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer"
  [tidy]="clang-tidy over the launcher"
  [fuzz]="all fuzzers"
)
declare -A part_minutes=(
  [launcher]=10 [clusters]=10 [frameworks]=5 [data]=20 [libtaas]=10 [package]=5 [random]=60 [sanitizers]=30 [tidy]=5 [fuzz]=5
)
# The suites of a part, as CTest's regular expression.
declare -A part_suites=(
  [launcher]='^(base|plan|command_line|run|sim|sim_scale|ui|proc|net|store|store_torch_client|store_same_answers|storage|node|launch|plan\..*|cli\..*|preload\..*|torch\.(hints|scripts)|notebook\..*|scripts\..*|configure|corpus|fuzz_.*)$'
  [clusters]='^cluster\.'
  [frameworks]='^frameworks$'
  [data]='^(data|sim_data|sim_data_stragglers|python\..*|torch\.(data|shared))$'
  [libtaas]='^(training|training\..*|parity\..*|train|train\..*|install\..*|store_cpp_client)$'
  [package]='^package\.'
)

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
  harness simulation env TAAS_SEEDS=200000 "$bin/test_run" "every run ends, leaves nothing behind and names what failed first"
  harness simulated-cluster "$bin/test_sim" --runs 20000
  harness simulated-data "$bin/test_sim_data" --runs 20000
  harness random-stops "$python" tests/cli/random_stops.py --runs 300
  harness random-publishing "$python" tests/cli/random_publishing.py --runs 300
  harness random-nodes "$python" tests/cli/random_nodes.py --runs 100
  harness random-nodes-apart "$python" tests/cli/random_nodes.py --runs 100 --apart
  harness drawn-pipelines env TAAS_PIPELINES=0-499 PYTHONHASHSEED=0 "$python" -m pytest -q -p no:cacheprovider tests/python/test_generated.py
  harness pipelines-in-all-ways env TAAS_FULL=1 PYTHONHASHSEED=0 "$python" -m pytest -q -p no:cacheprovider tests/python/test_pipelines.py
  harness batches env TAAS_FULL=1 "$python" -m pytest -q -p no:cacheprovider tests/python/test_batches.py
  unset TAAS_RUN TAAS_RANK_PROGRAM PYTHONPATH
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
