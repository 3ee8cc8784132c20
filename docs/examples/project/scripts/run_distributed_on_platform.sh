#!/bin/sh
# Trains on the platform that is at hand, and says which one that is: over ssh where HOSTS is set, as a job where
# there is SLURM, and otherwise on this machine. Inside a job of SLURM it uses the nodes of that job. Arguments are
# those of train.py.
#
#   HOSTS=node1,node2      the machines, which see this folder at the same path
#   GPUS=16                how many, over as many machines as that takes (by default 8 of each host, 8 of SLURM,
#                          and on this machine all that are there)
#   RANKS=4 NODES=2        instead: so many processes on each of so many machines, with or without GPUs
#   PLATFORM=ssh           or slurm or here: overrules the choice
#   TAAS_ARGUMENTS="…"     further arguments of taas-run, such as --partition gpu
#   PROGRAM=train_tf.py    another program
set -eu
cd "$(dirname "$0")/.."
if [ -e .venv/ready ]; then
  VIRTUAL_ENV=$PWD/.venv
  PATH=$VIRTUAL_ENV/bin:$PATH
  export VIRTUAL_ENV PATH
fi

at_hand() {
  if [ -n "${SLURM_JOB_ID:-}" ]; then
    echo here
  elif [ -n "${HOSTS:-}" ]; then
    echo ssh
  elif command -v sbatch >/dev/null; then
    echo slurm
  else
    echo here
  fi
}

platform=${PLATFORM:-$(at_hand)}
case $platform in
  slurm) place="as a job of SLURM" submit=--slurm ;;
  ssh) place="over ssh on ${HOSTS:?names the machines, separated by commas}" submit="--hosts $HOSTS" ;;
  here) place="here${SLURM_JOB_ID:+, in job $SLURM_JOB_ID of SLURM}" submit='' ;;
  *) echo "PLATFORM=$platform: neither ssh, slurm nor here" >&2 && exit 2 ;;
esac
if [ -n "${RANKS:-}" ]; then
  size="${NODES:+--nnodes $NODES} --nproc-per-node $RANKS"
elif [ -n "${GPUS:-}" ] || [ "$platform" = here ]; then
  size=${GPUS:+--gpus $GPUS}
elif [ "$platform" = slurm ]; then
  size="--gpus 8"
else
  case $HOSTS in
    *:*) size='' ;; # it says how many on each
    *) size="--gpus $((8 * $(echo "$HOSTS" | tr , '\n' | wc -l)))" ;;
  esac
fi
# shellcheck disable=SC2086  # lists of words
set -- $submit $size --max-restarts 2 ${TAAS_ARGUMENTS:-} "${PROGRAM:-train.py}" "$@"
echo "training $place: taas-run $*" >&2
exec taas-run "$@"
