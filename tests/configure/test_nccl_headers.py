"""Which headers libtaas takes for nccl, from where, and what is said when some are missing (TaasTorchCuda.cmake)."""

import pathlib

import pytest

from configuring import Project

HEADERS = {
    "nccl.h": "#include <cuda_runtime_api.h>\n#include <nv/target>\n",
    "cuda_runtime_api.h": "#include <crt/host_config.h>\n",
    "crt/host_config.h": "",
    "nv/target": "",
}


class Machine:
    """A made-up site-packages with a CUDA torch in it, and a CUDA toolkit elsewhere."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.site = folder / "site-packages"
        self.toolkit = folder / "cuda"
        self.put("torch/lib/libtorch_cuda.so", "")
        self.version = "2.11.0+cu130"
        self.project = Project(
            folder,
            "include(TaasTorchCuda)\n"
            "if(TARGET taas_torch_cuda)\n"
            "  get_target_property(folders taas_torch_cuda INTERFACE_INCLUDE_DIRECTORIES)\n"
            '  message(STATUS "folders: ${folders}")\n'
            "endif()\n",
        )

    def put(self, path: str, text: str) -> None:
        file = self.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def add(self, header: str, folder: str) -> None:
        self.put(f"{folder}/{header}", HEADERS[header])

    def configure(self) -> str:
        return self.project.configure(
            f"-DTAAS_TORCH_DIR={self.site}/torch",
            f"-DTAAS_TORCH_VERSION={self.version}",
            "-DTAAS_PYTHON=/nowhere/bin/python",
            CUDAToolkit_ROOT=str(self.toolkit),
            CUDA_HOME="",
            CUDA_PATH="",
        )


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def without_cccl(machine: Machine) -> Machine:
    """As torch 2.11 comes from PyPI, with triton."""
    machine.add("nccl.h", "nvidia/nccl/include")
    machine.add("cuda_runtime_api.h", "nvidia/cu13/include")
    machine.add("crt/host_config.h", "triton/backends/nvidia/include")
    return machine


def test_torch_without_cuda_is_without_nccl(machine: Machine) -> None:
    (machine.site / "torch/lib/libtorch_cuda.so").unlink()
    assert "torch is without CUDA: building without nccl" in machine.configure()


def test_what_to_install_is_named_and_looked_for_again(without_cccl: Machine) -> None:
    printed = without_cccl.configure()
    assert "Building without nccl, for want of headers: nv/target (pip install nvidia-cuda-cccl)\n" in printed
    without_cccl.add("nv/target", "nvidia/cu13/include/cccl")
    assert "With nccl" in without_cccl.configure()


def test_the_wheels_of_cuda_12_have_other_names(without_cccl: Machine) -> None:
    without_cccl.version = "2.11.0+cu128"
    assert "nv/target (pip install nvidia-cuda-cccl-cu12)" in without_cccl.configure()


def test_the_nccl_wheel_may_be_absent(without_cccl: Machine) -> None:
    (without_cccl.site / "nvidia/nccl/include/nccl.h").unlink()
    assert (
        "Building without nccl, for want of headers: nccl.h (pip install nvidia-nccl-cu13)" in without_cccl.configure()
    )


@pytest.mark.parametrize(
    "folder",
    [
        "nvidia/cu13/include",
        "nvidia/cuda_cccl/include",
        "cupy/_core/include/cupy/_cccl/libcudacxx",
        "cuda/cccl/headers/include",
        "../cuda/include",
        "../cuda/include/cccl",
    ],
)
def test_cccl_is_taken_from_wherever_it_is(without_cccl: Machine, folder: str) -> None:
    without_cccl.add("nv/target", folder)
    printed = without_cccl.configure()
    assert "With nccl" in printed
    assert str((without_cccl.site / folder).resolve()) in printed.split("folders: ")[1]


def test_crt_is_taken_from_a_toolkit(without_cccl: Machine) -> None:
    (without_cccl.site / "triton/backends/nvidia/include/crt/host_config.h").unlink()
    without_cccl.add("nv/target", "../cuda/include/cccl")
    without_cccl.add("crt/host_config.h", "../cuda/include")
    assert "With nccl" in without_cccl.configure()


def test_headers_that_do_not_compile_together_are_not_used(without_cccl: Machine) -> None:
    without_cccl.put("nvidia/cu13/include/nv/target", "#error not with this release\n")
    printed = without_cccl.configure()
    assert "Building without nccl, since its headers do not compile" in printed
    assert "not with this release" in printed
    without_cccl.put("nvidia/cu13/include/nv/target", "")
    assert "With nccl" in without_cccl.configure()
