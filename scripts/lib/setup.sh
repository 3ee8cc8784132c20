# shellcheck shell=bash
# What the scripts share. Sourced by them right after `cd` to the source folder.
#
#   TAAS_PYTHON   an interpreter that has torch already: its torch is used, nothing is installed into it
#   TAAS_VENV     the Python environment (default .venv)      TAAS_BUILD   the build folders' parent (default build)
#   TAAS_JOBS     compilers at a time (default: the cores, but no more than memory allows)
#   TAAS_WERROR   ON: a warning of the compiler ends the build, as in the project's own checks

# absolute <path>: paths that a caller gives are relative to the folder that the script was called in.
absolute() { case $1 in /*) echo "$1" ;; *) echo "${OLDPWD:-$PWD}/$1" ;; esac; }

venv=$(absolute "${TAAS_VENV:-$PWD/.venv}")
builds=$(absolute "${TAAS_BUILD:-$PWD/build}")

# shellcheck source=scripts/lib/steps.sh
. scripts/lib/steps.sh
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/python.sh
. scripts/lib/python.sh
# shellcheck source=scripts/lib/build.sh
. scripts/lib/build.sh
