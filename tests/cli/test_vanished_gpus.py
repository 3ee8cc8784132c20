"""GPUs that a machine has and no program can use, and accelerators that are not counted.

The bus, the driver's folder and the device files are those that tests made.
"""

import os
import pathlib
import shutil

import pytest
from conftest import free_port, own_mounts

FAKE_NVML = os.environ["TAAS_FAKE_NVML"]
BUS = pathlib.Path("/sys/bus/pci/devices")
NVIDIA, AMD, CONTROLLER, AUDIO = "0x10de", "0x1002", "0x030200", "0x040300"
VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n"
MOUNT = """
mount --bind "$1/bus" /sys/bus/pci/devices
mount --bind "$1/driver" /proc/driver
if [ -d "$1/files" ]; then
  for file in null zero full random urandom tty; do
    touch "$1/files/$file"; mount --bind /dev/$file "$1/files/$file"
  done
  mkdir -p "$1/files/shm"; mount --bind /dev/shm "$1/files/shm"
  for file in "$1"/files/withheld/*; do
    [ -e "$file" ] || continue
    name="$1/files/${file##*/}"; touch "$name"; mount --bind "$file" "$name"; mount -o remount,bind,ro "$name"
  done
  mount --rbind "$1/files" /dev
fi
"""
WAY_OUT = "; CUDA_VISIBLE_DEVICES= or --nproc-per-node cpu runs ranks on the CPU\n"


class Machine:
    def __init__(self, launcher, folder):
        self.launcher, self.folder = launcher, folder
        (folder / "bus").mkdir(parents=True)
        (folder / "driver").mkdir()
        (folder / "library").mkdir()

    def plug_in(self, vendor, kind, number=0, driver=None, model="0x2330"):
        device = self.folder / "bus" / f"0000:{0x17 + number:02x}:00.0"
        device.mkdir()
        for name, text in (("vendor", vendor), ("class", kind), ("device", model)):
            (device / name).write_text(text + "\n")
        if driver:
            (device / "driver").symlink_to(f"../../bus/pci/drivers/{driver}")

    def load_driver(self, gpus=0, version=VERSION):
        (self.folder / "driver" / "nvidia" / "gpus").mkdir(parents=True)
        (self.folder / "driver" / "nvidia" / "version").write_text(version)
        for number in range(gpus):
            (self.folder / "driver" / "nvidia" / "gpus" / str(number)).mkdir()

    def install_library(self, version="550.54.14"):
        library = self.folder / "library" / f"libnvidia-ml.so.{version}"
        shutil.copy(FAKE_NVML, library)
        (library.parent / "libnvidia-ml.so.1").symlink_to(library.name)

    def make_device_files(self, count, withheld=False):
        files = self.folder / "files"
        (files / "withheld").mkdir(parents=True)
        for number in range(count):
            (files / "withheld" / f"nvidia{number}" if withheld else files / f"nvidia{number}").touch()

    def run(self, *arguments, **variables):
        before = own_mounts(MOUNT, self.folder)
        library = f"{self.folder / 'library'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        return self.launcher.run(*arguments, before=before, env={"LD_LIBRARY_PATH": library, **variables})

    def refuses(self, *arguments, **variables):
        done = self.run(*arguments, **variables)
        assert done.returncode == 2 and done.stdout == "", done.stderr
        assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("taas-run: ")
        assert not (self.launcher.folder / "taas-runs").exists()
        return done.stderr.removeprefix("taas-run: ")


@pytest.fixture
def machine(launcher, tmp_path):
    launcher.environment.pop("CUDA_VISIBLE_DEVICES", None)
    if not BUS.is_dir():
        pytest.skip("no bus here, whose place that of the test could take")
    if any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has GPUs of its own")
    return Machine(launcher, tmp_path / "machine")


@pytest.mark.gate
def test_gpus_on_the_bus_without_a_driver_are_no_cpu_run(machine, launcher):
    machine.plug_in(NVIDIA, CONTROLLER)
    machine.plug_in(NVIDIA, CONTROLLER, 1)
    machine.plug_in(NVIDIA, AUDIO, 2)
    expected = (
        "no GPU can be used here: this machine has 2 NVIDIA GPUs, and the NVIDIA driver is not loaded: modprobe "
        "nvidia, or see dmesg"
    ) + WAY_OUT
    for size in (["--gpus", 8], ["--nproc-per-node", 2], []):
        assert machine.refuses(*size, *launcher.ranks("*=exit:0")) == expected
    for word in "gpu", "auto":
        assert (
            machine.refuses("--nproc-per-node", word, *launcher.ranks("*=exit:0"))
            == f"--nproc-per-node {word}: {expected}"
        )
    assert machine.refuses("--gpus", 2, *launcher.ranks("*=exit:0"), CUDA_VISIBLE_DEVICES="0,1") == expected


@pytest.mark.gate
def test_who_asks_for_the_cpu_gets_it(machine, launcher):
    machine.plug_in(NVIDIA, CONTROLLER)
    by_variable = machine.run("--gpus", 2, *launcher.ranks("*=exit:0"), CUDA_VISIBLE_DEVICES="")
    assert by_variable.returncode == 0 and "no GPU here: 2 CPU ranks with gloo" in by_variable.stderr
    by_word = machine.run("--nproc-per-node", "cpu", *launcher.ranks("*=exit:0"))
    assert by_word.returncode == 0, by_word.stderr
    of_a_job = machine.run("--standalone", "--gpus", 2, *launcher.ranks("*=exit:0"), SLURM_JOB_ID="7")
    assert of_a_job.returncode == 0, of_a_job.stderr


def test_gpus_of_virtual_machines_are_not_this_machines(machine, launcher):
    machine.plug_in(NVIDIA, CONTROLLER, driver="vfio-pci")
    assert machine.run("--gpus", 2, *launcher.ranks("*=exit:0")).returncode == 0


def test_why_the_driver_does_not_serve_them_is_said(machine, launcher):
    machine.plug_in(NVIDIA, CONTROLLER, driver="nouveau")
    said = machine.refuses("--gpus", 1, *launcher.ranks("*=exit:0"))
    assert "1 NVIDIA GPU under the kernel's driver nouveau, which CUDA cannot use" in said
    machine.load_driver(gpus=0)
    said = machine.refuses("--gpus", 1, *launcher.ranks("*=exit:0"))
    assert "1 NVIDIA GPU, and the driver (550.54.14) lists none" in said


def test_a_container_that_was_not_given_its_gpus(machine, launcher):
    machine.load_driver(gpus=8)
    said = machine.refuses("--gpus", 8, *launcher.ranks("*=exit:0"))
    assert "lists 8 GPUs, but neither device files nor libnvidia-ml.so.1 are here: a container has to be given" in said


@pytest.mark.gate
def test_a_driver_of_another_version_than_its_library(machine, launcher):
    machine.load_driver(gpus=8)
    machine.install_library("550.90.07")
    said = machine.refuses("--gpus", 8, *launcher.ranks("*=exit:0"), FAKE_NVML="mismatch")
    assert (
        said
        == (
            "no GPU can be used here: the NVIDIA driver in the kernel (550.54.14) and its library (550.90.07) do not "
            "fit (driver/library version mismatch): reboot, or load the driver again"
        )
        + WAY_OUT
    )
    for answer in "", "hang":  # then ranks find out
        fine = machine.run("--gpus", 8, "--dry-run", *launcher.ranks("*=exit:0"), FAKE_NVML=answer)
        assert fine.returncode == 0 and "8 visible GPU(s)" in fine.stdout


def test_a_driver_that_fits_is_not_asked(machine, launcher):
    machine.load_driver(gpus=8)
    machine.install_library()
    fine = machine.run("--gpus", 8, "--dry-run", *launcher.ranks("*=exit:0"), FAKE_NVML="mismatch")
    assert fine.returncode == 0 and "8 visible GPU(s)" in fine.stdout


def test_device_files_that_are_left_over(machine, launcher):
    machine.make_device_files(2)
    machine.install_library()
    said = machine.refuses("--gpus", 2, *launcher.ranks("*=exit:0"), FAKE_NVML="unloaded")
    assert "the NVIDIA driver is not loaded, though its device files are there" in said


def test_device_files_that_are_withheld(machine, launcher):
    machine.load_driver(gpus=2)
    machine.install_library()
    machine.make_device_files(2, withheld=True)
    said = machine.refuses("--gpus", 2, *launcher.ranks("*=exit:0"))
    assert "this process may not open the device files of 2 NVIDIA GPUs" in said
    in_a_job = machine.run("--standalone", "--gpus", 2, *launcher.ranks("*=exit:0"), SLURM_JOB_ID="7")
    assert in_a_job.returncode == 0 and "no GPU here: 2 CPU ranks" in in_a_job.stderr


@pytest.mark.gate
def test_a_node_of_several_refuses_its_ranks(machine, launcher):
    machine.plug_in(NVIDIA, CONTROLLER)
    meeting = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--node-rank=0",
        "--master-addr=127.0.0.2",
        f"--master-port={free_port()}",
    ]
    token = launcher.run("token").stdout.strip()
    done = machine.run(*meeting, *launcher.ranks("*=exit:0"), TAAS_TOKEN=token)
    assert done.returncode == 2 and "no GPU can be used here: this machine has 1 NVIDIA GPU, and" in done.stderr
    assert "; --env CUDA_VISIBLE_DEVICES= runs ranks on the CPU" in done.stderr


@pytest.mark.gate
def test_accelerators_of_others_are_named_with_what_to_write(machine, launcher):
    machine.plug_in(AMD, "0x120000", 0, "amdgpu", "0x74a1")
    machine.plug_in(AMD, "0x120000", 1, "amdgpu", "0x74a1")
    done = machine.run("--gpus", 2, *launcher.ranks("*=exit:0"))
    assert done.returncode == 0 and "no GPU here" not in done.stderr
    assert (
        "taas-run: 2 AMD GPUs here, which are accelerators that taas-run does not count: 2 ranks, each of which"
        in done.stderr
    )
    assert "--nproc-per-node N says how many" in done.stderr
    counted = machine.run("--nproc-per-node", 2, *launcher.ranks("*=exit:0"))
    assert counted.returncode == 0 and "AMD" not in counted.stderr


def test_the_table_of_devices_says_both(machine):
    machine.plug_in(AMD, CONTROLLER)
    done = machine.run("devices", PYTHON_EXEC="/bin/false")
    assert "no GPU is visible here that taas-run counts, but 1 AMD GPU\n" in done.stdout
    machine.plug_in(NVIDIA, CONTROLLER, 1)
    done = machine.run("devices", PYTHON_EXEC="/bin/false")
    assert done.returncode == 1 and "no GPU can be used here: this machine has 1 NVIDIA GPU, and" in done.stdout
