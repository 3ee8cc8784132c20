"""One kernel serves many tests: each begins in a folder of its own, without the variables of the one before."""

import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from kernel import Kernel

CLEAN = """
%load_ext taas
import os as _os
for _name in [name for name in globals() if not name.startswith("_") and name not in get_ipython().user_ns_hidden]:
    del globals()[_name]
_os.makedirs({folder!r}, exist_ok=True)
_os.chdir({folder!r})
"""


@pytest.fixture
def new_kernel(tmp_path):
    """Makes kernels that only this test has."""
    made, folders = [], []

    def make():
        folders.append(tempfile.mkdtemp(prefix="taas-test-"))
        made.append(Kernel(tmp_path, pathlib.Path(folders[-1])))
        made[-1].run("%load_ext taas").check()
        return made[-1]

    yield make
    for kernel in made:
        kernel.end()
        kernel.wait_for_no_process()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def shared_kernel(tmp_path_factory):
    sockets = tempfile.mkdtemp(prefix="taas-test-")
    kernel = Kernel(tmp_path_factory.mktemp("notebook"), pathlib.Path(sockets))
    yield kernel
    kernel.end()
    kernel.wait_for_no_process()
    shutil.rmtree(sockets, ignore_errors=True)


@pytest.fixture
def kernel(shared_kernel, tmp_path):
    """A kernel in a folder of its own; no run of the test is left."""
    shared_kernel.run(CLEAN.format(folder=str(tmp_path / "project"))).check()
    yield shared_kernel
    shared_kernel.wait_for_no_process()


@pytest.fixture
def project(tmp_path):
    """The kernel's working directory."""
    return tmp_path / "project"
