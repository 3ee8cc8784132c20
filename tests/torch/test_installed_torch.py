"""What the installed torch is: the words by which verdicts know its errors, and what "nccl" is there."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(
    not hasattr(torch.distributed, "ProcessGroupNCCL2"), reason="what is said here is said of torch 2.15 with CUDA"
)
VERDICT = pathlib.Path(__file__).parents[2] / "lib" / "run" / "verdict"
TABLES = ("kLostPeerTexts", "kTimeout", "kStoreTimeout", "kOwnFault")
NOT_OF_TORCH = {
    "Connection reset by peer",  # the C library
    "Broken pipe",
    "ddress already in use",
}
NO_MORE = {"failed to recv, got 0 bytes"}  # until torch 2.7
NCCL2 = "Aborting process on rank ", " due to ", "nccl hit async error"


def words_of(table):
    text = (VERDICT / "peer_loss.cpp").read_text()
    body = re.search(table + r"\{(.*?)\};", text, re.DOTALL)[1]
    return set(re.findall(r'"((?:[^"\\]|\\.)*)"', body))


def found(words):
    """Those that the libraries of torch, NCCL and CUDA have, or torch's Python code."""
    site = pathlib.Path(torch.__file__).parents[1]
    files = [
        *site.glob("torch/lib/lib*.so*"),
        *site.glob("torch/distributed/*.py"),
        *site.glob("nvidia/**/libnccl.so*"),
    ]
    files += site.glob("nvidia/**/libcudart.so*")
    searched = subprocess.run(
        ["grep", "--text", "--only-matching", "--no-filename", "--fixed-strings", "--file=-", *files],
        input="\n".join(words).encode(),
        env={**os.environ, "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return {line.decode() for line in searched.stdout.splitlines()}


@pytest.mark.gate
def test_the_words_of_verdicts_are_in_the_installed_torch():
    words = {word for table in TABLES for word in words_of(table)}
    assert len(words) > 30
    assert words - found(words | set(NCCL2)) - NOT_OF_TORCH == NO_MORE
    assert set(NCCL2) <= found(NCCL2)


MADE = """
import sys
import torch.distributed
assert not torch.distributed.distributed_c10d.Backend._plugins, "the choice would be made at import"
torch.distributed.distributed_c10d.Backend._ensure_backend_registered("nccl")
print(torch.distributed.distributed_c10d.Backend._plugins["NCCL"].creator_fn.__name__)
"""


@pytest.mark.parametrize(
    "chosen, made",
    [(None, "_create_nccl2_process_group"), ("1", "_create_nccl2_process_group"), ("0", "_create_nccl_process_group")],
)
def test_what_nccl_is_is_chosen_by_a_variable(chosen, made):
    """What docs/gpu.md says of torch 2.15, and where ranks have the older one."""
    environment = {name: value for name, value in os.environ.items() if name != "TORCH_DIST_USE_NCCL2"}
    if chosen:
        environment["TORCH_DIST_USE_NCCL2"] = chosen
    said = subprocess.run([sys.executable, "-c", MADE], env=environment, stdout=subprocess.PIPE, check=True)
    assert said.stdout.decode().split() == [made]


def test_the_device_that_the_newer_nccl_takes_is_counted_by_local_rank(monkeypatch):
    """So a rank that sees several devices of its own would have another one than its first."""
    from torch.distributed import distributed_c10d

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "3")
    options = distributed_c10d._DistributedBackendOptions()
    assert distributed_c10d._nccl2_device(options) == torch.device("cuda", 1)


BUILD = pathlib.Path(os.environ["TAAS_RUN"]).parents[1]


@pytest.mark.gate
def test_the_nccl_plugin_finds_all_it_calls_in_the_installed_torch_and_nccl():
    """With RTLD_NOW, without a driver; what is called of NCCL is there."""
    program = f"""
import ctypes, os
import torch
plugin = ctypes.CDLL({str(BUILD / "lib" / "libtaas_nccl.so")!r}, mode=os.RTLD_NOW)
built, loaded = ctypes.c_int(), ctypes.c_int()
plugin.taas_nccl_versions(ctypes.byref(built), ctypes.byref(loaded))
print(built.value, loaded.value)
assert plugin.taas_make_nccl and plugin.taas_gpu_uuid
"""
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert said[0] == said[1] and int(said[0]) > 20000


def test_a_program_with_another_torch_than_libtaas_was_built_with_ends_with_one_line(tmp_path):
    other = tmp_path / "other.c"
    other.write_text("unsigned long long aoti_torch_abi_version(void) { return 2ULL << 56 | 9ULL << 48; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "other.so", other], check=True)
    ended = subprocess.run(
        [BUILD / "bin" / "train", "--epochs", "1"],
        env={**os.environ, "LD_PRELOAD": str(tmp_path / "other.so"), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    major, minor = torch.__version__.split(".")[:2]
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1
    assert f"libtaas was built with torch {major}.{minor}." in ended.stderr
    assert "and this program has loaded 2.9.0: " in ended.stderr
