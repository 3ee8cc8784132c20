"""Builds what the checks run, where it is not there."""

import os
import pathlib
import subprocess

from check_gpu.session import ROOT

PROGRAMS = ("taas-run", "train", "nccl_gpu_test", "dist_rank", "training_gpu_test", "ddp_parity")
TARGETS = (*PROGRAMS, "taas_native")
BUILD = """
cd "$1"; shift
. scripts/lib/setup.sh
steps=3
begin "packages of the distribution"; install_packages
begin "Python with torch"; prepare_python; activate_python
begin "building"; configure release -DTAAS_TESTS=ON; build release "$@"; finish
"""


class Failed(Exception):
    """One line that says what to do."""


def folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("TAAS_BUILD", ROOT / "build")).resolve() / "release" / "bin"


def interpreter() -> str:
    return str(pathlib.Path(os.environ.get("TAAS_VENV", ROOT / ".venv")).absolute() / "bin" / "python")


def missing() -> list[str]:
    return [name for name in PROGRAMS if not (folder() / name).exists()]


def build() -> None:
    """As ./scripts/quickstart does it; its progress is shown."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", BUILD, "bash", str(ROOT), *TARGETS])
    if done.returncode != 0 or missing():
        raise Failed(f"the build failed: {', '.join(missing()) or 'see above'}")
    if not (folder().parent / "lib" / "libtaas_nccl.so").exists():
        raise Failed(f"this build is without nccl: grep nccl {folder().parents[1]}/configure-release.log says why")
