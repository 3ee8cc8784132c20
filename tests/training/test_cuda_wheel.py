"""What torch's CUDA wheel has that taas-run builds on, as far as it can be seen without a GPU: torch's next change is seen the day it comes."""

import ctypes
import functools
import importlib.util
import mmap
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = os.environ.get("TAAS_NCCL_PLUGIN", "")
BUILT = [pathlib.Path(path) for path in os.environ.get("TAAS_BUILT", "").split(":") if path]
TORCH = pathlib.Path(importlib.util.find_spec("torch").origin).parent
LIBRARIES = [TORCH / "lib" / f"libtorch_{part}.so" for part in ("cuda", "cpu", "python")]
pytestmark = pytest.mark.skipif(not LIBRARIES[0].exists(), reason="torch is without CUDA")


def output_of(program, **variables):
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **variables}, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def symbols_of(path):
    """Of CUDA's and NCCL's functions, those that a library or program calls."""
    said = subprocess.run(["nm", "-D", "--undefined-only", path], text=True, capture_output=True, check=True).stdout
    return {name for name in re.findall(r" U (\w+)", said) if re.match(r"cu[A-Z]|cuda[A-Z]|nccl[A-Z]", name)}


@pytest.mark.skipif(not PLUGIN, reason="built without nccl")
def test_the_plugin_finds_all_that_it_calls():
    program = "import sys, os, ctypes, torch; ctypes.CDLL(sys.argv[1], os.RTLD_NOW).taas_make_nccl"
    subprocess.run([sys.executable, "-c", program, PLUGIN], check=True, timeout=300)


@pytest.mark.skipif(not PLUGIN, reason="built without nccl")
def test_the_plugin_knows_which_nccl_it_was_built_with_and_which_torch_has():
    program = """
import sys, ctypes, torch
plugin = ctypes.CDLL(sys.argv[1])
built, loaded = plugin.taas_built_nccl(), plugin.taas_loaded_nccl()
assert built // 100 == loaded // 100 and loaded == torch.cuda.nccl.version()[0] * 10000 + 100 * torch.cuda.nccl.version()[1] + \
    torch.cuda.nccl.version()[2], (built, loaded)
"""
    subprocess.run([sys.executable, "-c", program, PLUGIN], check=True, timeout=300)


DRIVER = """
#include <unistd.h>
int cuDriverGetVersion(int* version) { *version = 99000; return write(2, "asked\\n", 6) != 6; }
int cuInit(unsigned flags) { return 100; }
"""


@pytest.mark.skipif(not PLUGIN, reason="built without nccl")
def test_a_program_in_cpp_asks_the_driver(tmp_path):
    """torch's own CUDA runtime over a made-up driver, which gets as far as this: the driver's version, and that it has no GPU. ATen looks
    for CUDA once; whatever makes it look before the plugin is loaded leaves every program in C++ without its GPUs."""
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", library], input=DRIVER, text=True, check=True)
    place = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    done = subprocess.run([os.environ["TAAS_TRAIN"], "--backend", "nccl"], text=True, capture_output=True, timeout=300,
                          env={**environment, **place, "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 2 and "asked" in done.stderr and "has no GPU" in done.stderr, done.stderr


@pytest.mark.skipif(not PLUGIN, reason="built without nccl")
def test_of_cuda_only_the_plugin_calls_what_torch_s_own_headers_do_and_a_gpu_s_name():
    assert BUILT and [path.name for path in BUILT if symbols_of(path)] == []
    of_headers = {"cudaDeviceSynchronize", "cudaEventCreateWithFlags", "cudaEventDestroy", "cudaEventElapsedTime", "cudaEventQuery",
                  "cudaEventRecord", "cudaEventSynchronize", "cudaGetErrorString", "cudaGetLastError", "cudaStreamIsCapturing",
                  "cudaStreamWaitEvent"}
    assert symbols_of(PLUGIN) - of_headers == {"cudaGetDeviceProperties"}


def test_no_source_calls_cuda():
    """But for a GPU's name, by which NCCL tells GPUs apart. NVML is a library of its own."""
    found = set()
    for source in (*ROOT.glob("lib/**/*.[ch]pp"), *ROOT.glob("apps/**/*.[ch]pp"), *ROOT.glob("include/**/*.h*"), *ROOT.glob("lib/**/*.py")):
        text = re.sub(r"//.*|#.*|\"[^\"\n]*\"", "", source.read_text())
        found |= {(source.name, call) for call in re.findall(r"\b(cuda[A-Z]\w+|cu[A-Z][a-z]\w+|libcudart\w*)\(", text)}
    assert found == {("nccl_plugin.cpp", "cudaGetDeviceProperties")}


def test_data_delivery_knows_no_gpu():
    words = [(source.name, word) for source in ROOT.glob("lib/data/**/*.?pp")
             for word in re.findall(r"\b(?:cuda|gpu|pinned memory)\b", source.read_text(), re.IGNORECASE)]
    assert words == []


NCCL_IS = """
from torch.distributed.distributed_c10d import Backend
if hasattr(Backend, "_ensure_backend_registered"):
    Backend._ensure_backend_registered("nccl")
print(Backend._plugins["NCCL"].creator_fn.__name__ if "NCCL" in Backend._plugins else "_create_nccl_process_group")
"""


def test_nccl_is_the_stock_implementation_with_what_taas_run_sets():
    assert output_of(NCCL_IS, TORCH_DIST_USE_NCCL2="0") == ["_create_nccl_process_group"]
    known = {"_create_nccl_process_group", "_create_nccl2_process_group"}
    assert set(output_of(NCCL_IS, TORCH_DIST_USE_NCCL2="1")) <= known, "torch has a third one: read it before it is used"


def test_nccl2_is_bound_to_the_device_of_local_rank():
    """Why it is not used: a rank that sees its own GPUs alone has its first one as device 0, whatever LOCAL_RANK is."""
    distributed = pytest.importorskip("torch.distributed.distributed_c10d")
    if not hasattr(distributed, "_nccl2_device"):
        pytest.skip("this torch has no nccl2")
    program = """
import types, torch
import torch.distributed.distributed_c10d as groups
torch.cuda.device_count = lambda: 2
options = types.SimpleNamespace(enable_reconfigure=False, process_group=None, global_ranks_in_group=[], group_rank=1)
print(groups._nccl2_device(options))
"""
    assert output_of(program, LOCAL_RANK="1") == ["cuda:1"]


def test_nccl_s_version_is_what_torch_says():
    import torch

    library = next((path / "nccl" / "lib" / "libnccl.so.2" for path in [TORCH.parent / "nvidia"] if (path / "nccl").exists()), None)
    if library is None:
        pytest.skip("NCCL is in torch's own libraries")
    version = ctypes.c_int()
    assert ctypes.CDLL(str(library)).ncclGetVersion(ctypes.byref(version)) == 0
    major, minor, patch = torch.cuda.nccl.version()
    assert version.value == major * 10000 + minor * 100 + patch


@functools.cache
def everything():
    """What torch and NCCL may say: their libraries, and torch's Python."""
    texts = [mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ) for path in (*LIBRARIES, *TORCH.parent.glob("nvidia/nccl/lib/libnccl.so.2"))]
    return [*texts, *(path.read_bytes() for path in TORCH.glob("distributed/*.py"))]


NOT_TORCHS = {"Connection reset by peer": "the C library's", "Broken pipe": "the C library's", "failed to recv, got 0 bytes": "until torch 2.7"}


def phrases():
    text = (ROOT / "lib/run/verdict/peer_loss.cpp").read_text()
    tables = re.findall(r"constexpr std::array<std::string_view, \d+> \w+\{(.*?)\};", text, re.DOTALL)
    return [phrase for table in tables for phrase in re.findall(r'"([^"\n]+)"', table)]


@pytest.mark.parametrize("phrase", [phrase for phrase in phrases() if phrase not in NOT_TORCHS])
def test_torch_still_says_what_the_verdict_looks_for(phrase):
    assert any(text.find(phrase.encode()) >= 0 for text in everything()), "no word of it in torch: how does it say that now?"


def test_there_are_phrases():
    assert len(phrases()) > 30 and set(NOT_TORCHS) <= set(phrases())
