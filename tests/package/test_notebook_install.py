"""%pip install of the wheel in a notebook whose kernel has never seen taas-run."""

import json
import pathlib
import shutil
import site
import sys
import tempfile
from typing import Callable, Iterator

import pytest

from environments import HANG, Environment

for module in ("ipykernel", "pip"):
    pytest.importorskip(module, reason=f"no {module} for the kernel")
jupyter_client = pytest.importorskip("jupyter_client", reason="no jupyter_client to talk to a kernel with")

Cell = Callable[[str], str]


@pytest.fixture
def kernel(environment: Environment) -> Iterator[Cell]:
    """Runs cells in a kernel of the environment, with the tests' IPython and pip. Returns what a cell has printed."""
    (environment.site / "borrowed.pth").write_text("\n".join(site.getsitepackages()))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="taas-test-"))  # short: the kernel's sockets lie in it
    (folder / "throwaway").mkdir()
    command = [str(environment.bin / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "throwaway/kernel.json").write_text(
        json.dumps({"argv": command, "display_name": "", "language": "python"})
    )
    specs = jupyter_client.kernelspec.KernelSpecManager(kernel_dirs=[str(folder)])
    manager = jupyter_client.KernelManager(
        kernel_name="throwaway", kernel_spec_manager=specs, transport="ipc", ip=str(folder / "kernel")
    )
    manager.start_kernel(
        cwd=str(environment.root), env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "CUDA_VISIBLE_DEVICES": ""}
    )
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=HANG)

    def run(code: str) -> str:
        printed: list[str] = []
        reply = client.execute_interactive(
            code,
            allow_stdin=False,
            timeout=HANG,
            output_hook=lambda message: printed.append(message["content"].get("text", "")),
        )
        assert reply["content"]["status"] == "ok", (reply["content"], printed)
        return "".join(printed)

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    shutil.rmtree(folder, ignore_errors=True)


def test_a_cell_runs_on_two_ranks_right_after_pip_install(
    kernel: Cell, environment: Environment, wheel: pathlib.Path
) -> None:
    missing = kernel("import importlib.util\nprint(importlib.util.find_spec('taas'))")
    if missing != "None\n":
        pytest.skip(f"taas is installed into the tests' own environment {sys.prefix}")
    assert "Successfully installed taas-run" in kernel(f"%pip install --no-index --no-deps {wheel}")
    assert kernel("import taas\nprint(taas.__file__)") == f"{environment.site}/taas/__init__.py\n"
    kernel("%load_ext taas")
    ranks = kernel(
        "#pragma taas --gpus 2 --preload none --ranks 0,1\nimport os\n"
        "print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"
    )
    assert "rank 0 of 2" in ranks and "rank 1 of 2" in ranks, ranks
