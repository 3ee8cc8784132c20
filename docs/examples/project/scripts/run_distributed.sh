#!/bin/sh
# Trains on all GPUs of this machine, or on GPUS of them over as many machines as that takes. RANKS asks for so many processes
# on this machine instead. Arguments are those of train.py; TAAS_ARGUMENTS are further ones of taas-run.
#
#   sbatch --nodes 2 --gpus-per-node 8 --ntasks-per-node 1 --wrap "GPUS=16 ./scripts/run_distributed.sh"
set -eu
cd "$(dirname "$0")/.."
if [ -e .venv/ready ]; then
  VIRTUAL_ENV=$PWD/.venv
  PATH=$VIRTUAL_ENV/bin:$PATH
  export VIRTUAL_ENV PATH
fi
# shellcheck disable=SC2086  # TAAS_ARGUMENTS is a list of words
exec taas-run ${GPUS:+--gpus "$GPUS"} ${RANKS:+--nproc-per-node "$RANKS"} --max-restarts 2 ${TAAS_ARGUMENTS:-} train.py "$@"
