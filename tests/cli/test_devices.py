"""`taas-run devices`: what there is to compute on, and what a tensor on each says. The driver is made by tests."""

import sys

import pytest
from conftest import own_mounts, with_driver

TWO_GPUS = "mount -t tmpfs none /proc/driver; mkdir -p /proc/driver/nvidia/gpus/0 /proc/driver/nvidia/gpus/1"


@pytest.fixture
def machine(launcher, tmp_path):
    """Calls it on a machine whose driver has two GPUs; `torch` is the text of a module of that name."""
    before = own_mounts(TWO_GPUS)
    driver = with_driver(tmp_path)

    def call(torch, **variables):
        (tmp_path / "torch.py").write_text(torch)
        own = {"PYTHON_EXEC": sys.executable, "PYTHONPATH": str(tmp_path), **variables, **driver}
        return launcher.run("devices", before=before, env=own)

    return call


WORKS_BUT_ON_THE_SECOND = """
__version__ = "2.99"
class Tensor(int):
    __add__ = lambda self, other: Tensor(int(self) + other)
    item = lambda self: int(self)
def zeros(count, device):
    if device == "cuda:1":
        raise RuntimeError("CUDA error: out of memory\\nand a stack")
    return Tensor()
"""


@pytest.mark.gate
def test_each_device_is_described_and_tried(machine):
    done = machine(WORKS_BUT_ON_THE_SECOND, FAKE_NVML=f"1 77 {79 << 30}")
    assert done.returncode == 1 and done.stderr == ""
    header, cpu, first, second, closing = done.stdout.splitlines()
    assert header.split() == ["device", "what", "it", "is", "memory", "a", "tensor", "there"]
    assert cpu.startswith("cpu ") and " core" in cpu and "GiB free" in cpu and cpu.endswith("  works")
    assert first.split() == ["cuda:0", "Fake", "80.0", "of", "80.0", "GiB", "free", "works"]
    assert second.split()[:7] == ["cuda:1", "Fake", "1.0", "of", "80.0", "GiB", "free"]
    assert second.endswith("  CUDA error: out of memory")
    assert closing == f"tried with torch 2.99 of {sys.executable}"


def test_a_gpu_whose_memory_has_failed_is_said(machine):
    done = machine(WORKS_BUT_ON_THE_SECOND, FAKE_NVML_ECC="0", CUDA_VISIBLE_DEVICES="0")
    assert "80.0 of 80.0 GiB free, has had 2 errors of its memory that could not be corrected  works\n" in done.stdout
    assert "has had" not in machine(WORKS_BUT_ON_THE_SECOND, CUDA_VISIBLE_DEVICES="0").stdout


@pytest.mark.gate
def test_devices_are_those_that_a_program_would_see(machine):
    order = {"FAKE_NVML_MIXED": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    done = machine(WORKS_BUT_ON_THE_SECOND, CUDA_VISIBLE_DEVICES="1", **order)
    assert done.returncode == 0
    assert [line.split()[:3] for line in done.stdout.splitlines()[2:3]] == [["cuda:0", "Fake", "1"]]
    none = machine(WORKS_BUT_ON_THE_SECOND, CUDA_VISIBLE_DEVICES="")
    assert none.returncode == 0 and "no GPU is visible here, with CUDA_VISIBLE_DEVICES=''\n" in none.stdout


@pytest.mark.gate
def test_a_torch_that_crashes_is_no_success(machine):
    done = machine("import os; os.abort()")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "\ntrying tensors broke off: " in done.stdout


def test_a_driver_that_hangs_and_an_absent_torch_are_said(machine):
    done = machine("raise ImportError('no module of that name')", FAKE_NVML="hang", CUDA_VISIBLE_DEVICES="0")
    assert done.returncode == 0
    assert "cuda:0  GPU 0" in done.stdout and "unknown: the driver does not say  not tried\n" in done.stdout
    assert f"no tensor was tried: {sys.executable} has no torch (no module of that name)\n" in done.stdout
