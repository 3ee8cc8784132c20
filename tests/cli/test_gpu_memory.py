"""Who holds the memory of a GPU that is full, as the driver's library says it: here one that the tests have made."""

import os
import pathlib

import pytest
from conftest import with_driver

GIB = 1 << 30

FULL = """
import os, sys
if os.environ["RANK"] == "1":
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
             "GPU 0 has a total capacity of 79.10 GiB")
import time; time.sleep(600)
"""


@pytest.fixture
def driver(tmp_path):
    return with_driver(tmp_path)


def full_gpu(launcher, **variables):
    result = launcher.run("--nproc-per-node", 2, launcher.python(FULL), env=variables)
    assert result.returncode == 1, result.stderr
    assert "use a smaller batch" in result.stderr
    return result.stderr


@pytest.mark.gate
def test_who_holds_the_memory_is_named_with_its_program(launcher, driver):
    name = pathlib.Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    said = full_gpu(
        launcher, FAKE_NVML=f"3 {os.getpid()} {60 * GIB},7 999999 {GIB}", CUDA_VISIBLE_DEVICES="3,7", **driver
    )
    assert f"GPU 3's memory is held by process {os.getpid()} ({name}): 60.0 GiB" in said
    assert "999999" not in said, "that is another GPU's"


def test_more_processes_than_were_made_room_for(launcher, driver):
    holders = ",".join(f"0 {900000 + number} {number * GIB}" for number in range(1, 41))
    said = full_gpu(launcher, FAKE_NVML=holders, CUDA_VISIBLE_DEVICES="0", **driver)
    assert "held by process 900040: 40.0 GiB, process 900039: 39.0 GiB" in said and "and 36 more" in said


def test_a_number_that_may_mean_another_gpu_for_cuda_blames_nobody(launcher, driver):
    """NVML counts along the bus, and CUDA the fastest first, unless it is told to do as NVML."""
    where = {"FAKE_NVML": f"3 900001 {GIB}", "CUDA_VISIBLE_DEVICES": "3", "FAKE_NVML_MIXED": "1", **driver}
    assert "is held by" not in full_gpu(launcher, **where)
    assert "GPU 3's memory is held by process 900001" in full_gpu(launcher, CUDA_DEVICE_ORDER="PCI_BUS_ID", **where)


@pytest.mark.parametrize("name", ["GPU-1a2b", "MIG-3c4d"])
def test_a_gpu_or_a_slice_may_be_named_by_its_uuid(launcher, driver, name):
    said = full_gpu(launcher, FAKE_NVML=f"{name} 900001 {GIB}", CUDA_VISIBLE_DEVICES=name, **driver)
    assert f"; {name}'s memory is held by process 900001: 1.0 GiB" in said


@pytest.mark.gate
def test_a_driver_that_hangs_does_not_hold_up_the_verdict(launcher, driver):
    said = full_gpu(launcher, FAKE_NVML="hang", CUDA_VISIBLE_DEVICES="0", **driver)
    assert "is held by" not in said


FAILS = """
import os, sys
if os.environ["RANK"] == "1":
    sys.exit("RuntimeError: CUDA error: unspecified launch failure")
import time; time.sleep(600)
"""


@pytest.mark.gate
def test_a_gpu_that_has_failed_is_named_with_what_the_driver_says(launcher, driver):
    def said(**variables):
        result = launcher.run("--nproc-per-node", 2, launcher.python(FAILS), env={**driver, **variables})
        assert result.returncode == 1, result.stderr
        return result.stderr

    lost = said(FAKE_NVML_LOST="1")
    assert "hint: GPU 1 has fallen off the bus: dmesg has an Xid; leave the node out, or reset the GPU" in lost
    assert "GPU 5 has had 2 errors of its memory that could not be" in said(
        FAKE_NVML_ECC="5", CUDA_VISIBLE_DEVICES="4,5"
    )
    assert "has had" not in said(FAKE_NVML_ECC="0"), "that is the other rank's"
    assert "a kernel failed" in said()


def test_without_a_driver_the_verdict_is_as_ever(launcher):
    assert "is held by" not in full_gpu(launcher)
