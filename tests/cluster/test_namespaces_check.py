"""taas-run check: what is wrong with nodes is said before ranks start there, each in a line with the way out."""

import json
import pathlib
import re

import pytest

from conftest import TAAS_RUN, give_up
from runs import assert_nothing_left

HOSTS = "n0,n1,n2,n3"

SSHD_PIDS = 'grep -lx sshd /proc/[0-9]*/comm | cut -d / -f 3'
OTHER_PYTHON = r"""#!/bin/sh
printf 'python\t3.9.1\ntorch\t2.9.1+cu128\ncuda\t12.8\nnccl\t2.26.2\n'
"""
PYTHON = """#!/bin/sh
exec {python} "$@"
"""


@pytest.fixture
def site(cluster, tmp_path):
    """What the nodes share: a script, a torch of which only the version is read, and an interpreter that finds it."""
    return Site(cluster)


class Site:
    def __init__(self, cluster):
        self.cluster = cluster
        self.folder = cluster.home / "project"
        self.folder.mkdir()
        self.script = self.file("code/train.py", "print('train')\n")
        self.file("site/torch/__init__.py", "")
        self.file("site/torch/version.py", "from typing import Optional\n__version__ = '2.9.1+cu128'\ncuda: Optional[str] = '12.8'\n")
        self.file("site/nvidia_nccl_cu12-2.27.5.dist-info/METADATA", "Name: nvidia-nccl-cu12\nVersion: 2.27.5\n")
        self.python = self.program("bin/python3", PYTHON.format(python="/usr/bin/python3"))
        self.environment = {"PYTHON_EXEC": str(self.python), "PYTHONPATH": str(self.folder / "site")}

    def file(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def program(self, name: str, text: str) -> pathlib.Path:
        path = self.file(name, text)
        path.chmod(0o755)
        return path

    def replace(self, node: str, path: pathlib.Path, text: str):
        """Another file in this place, on one node."""
        other = self.file(f"other/{node}/{path.name}", text)
        other.chmod(path.stat().st_mode)
        self.cluster[node].mount(other, path)

    def check(self, *flags, hosts=HOSTS, program=None, env=None, **options):
        command = [TAAS_RUN, "check", "--hosts", hosts, "--nproc-per-node", 1, *flags, program or self.script]
        return self.cluster.login.run(*command, env={**self.environment, **(env or {})}, cwd=self.folder, **options)


def lines_of(result) -> list:
    """What was found, without the last line."""
    assert result.stderr == "", result.stderr
    return result.stdout.splitlines()[:-1]


def assert_found(result, *expected: str):
    """Each in a line of its own, and nothing else."""
    lines = lines_of(result)
    for pattern in expected:
        assert any(re.search(pattern, line) for line in lines), f"{pattern}: not in\n{result.stdout}"
    assert len(lines) == len(expected), result.stdout
    assert result.returncode == (1 if any(line.startswith("error") for line in lines) else 0)


def test_nothing_is_found_where_nothing_is_wrong(site):
    result = site.check()
    assert re.fullmatch(
        r"check: no error on 4 nodes with 0 GPUs, Python [\d.]+, torch 2\.9\.1\+cu128\n", result.stdout), result
    assert result.returncode == 0
    assert sorted(path.name for path in site.folder.iterdir()) == ["bin", "code", "site"]  # no folder of a run
    assert_nothing_left(site.cluster)


def test_what_differs_between_nodes(site):
    site.cluster["n1"].hide(site.folder / "code")
    site.replace("n2", site.script, "print('another one')\n")
    site.replace("n3", site.folder / "site/torch/version.py", "__version__ = '2.8.0+cu128'\ncuda = '12.8'\n")
    site.replace("n0", site.folder / "bin/python3", OTHER_PYTHON)
    assert_found(site.check(),
                 r"^error: n1: .*train\.py: no such file",
                 r"^error: n2: .*train\.py has other contents there than on most nodes; copy it",
                 r"^error: n3: has torch 2\.8\.0\+cu128, the others torch 2\.9\.1\+cu128; give all nodes the same",
                 r"^error: n0: has Python 3\.9, the others Python 3\.\d+",
                 r"^error: n0: has NCCL 2\.26\.2, the others NCCL 2\.27\.5")
    assert_nothing_left(site.cluster)


def test_cpu_machines_are_looked_at_too(site):
    sound = site.check("--cpus", 1, "--data-hosts", "n3", hosts="n0,n1,n2")
    assert sound.stdout.startswith("check: no error on 3 nodes with 0 GPUs and 1 CPU machine, Python"), sound
    site.replace("n3", site.folder / "site/torch/version.py", "__version__ = '2.8.0+cpu'\ncuda = None\n")
    assert_found(site.check("--cpus", 1, "--data-hosts", "n3", hosts="n0,n1,n2"),
                 r"^error: n3: has torch 2\.8\.0, the others torch 2\.9\.1; give all nodes the same")
    assert_found(site.check("--cpus", 2, "--data-hosts", "n3,nowhere", hosts="n0,n1,n2"),
                 r"^error: n3: has torch 2\.8\.0, ",
                 r"^error: CPU machines have not come: nowhere")
    assert_nothing_left(site.cluster)


def test_what_nodes_lack(site):
    cluster = site.cluster
    cluster["n0"].check("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/dev/shm")
    cluster["n1"].hide(site.folder / "site")
    site.replace("n2", site.folder / "bin/python3", "#!/bin/sh\nexit 3\n")
    result = site.check("--env", "GLOO_SOCKET_IFNAME=ib7", "--env", "NCCL_SOCKET_IFNAME=^lo")
    assert_found(result,
                 r"^error: n0: /dev/shm has 64 KiB left of 64 KiB: .*--shm-size",
                 r"^error: n1: has no torch, the others torch 2\.9\.1",
                 r"^error: n2: .*/bin/python3 cannot run: it ended with exit code 3",
                 r"^error: all nodes: GLOO_SOCKET_IFNAME=ib7 names no interface that is up; there are: lo, eth0")
    assert_nothing_left(site.cluster)


def test_where_output_cannot_go(site):
    cluster = site.cluster
    output = site.folder / "runs"
    output.mkdir()
    cluster["n0"].check("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", output)
    cluster["n1"].check("mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", output)
    cluster["n2"].check("mount", "-t", "tmpfs", "-o", "size=900m", "tmpfs", output)
    assert_found(site.check("--output", "runs"),
                 r"^error: n0: /.*/project/runs cannot be written to: Read-only file system; --output chooses another",
                 r"^error: n1: /.*/project/runs has 20 MiB left; free some",
                 r"^warning: n2: /.*/project/runs has 900 MiB left")
    assert list(output.iterdir()) == []


def test_ways_that_are_shut_and_names_that_lie(site):
    cluster = site.cluster
    cluster.network.cut_between(["n1"], ["n3"])
    hosts = cluster["n2"].check("cat", "/etc/hosts")
    lying = re.sub(r"(?m)^\S+ n2$", "10.99.0.9 n2", hosts)
    cluster["n2"].mount(site.file("hosts", lying), "/etc/hosts")
    assert_found(site.check(),
                 r"^error: n1: cannot reach n3: no connection to port \d+ of 10\.77\.0\.\d+, .*--interface chooses",
                 r"^error: n3: cannot reach n1: ",
                 r"^error: n2: its own name stands for 10\.99\.0\.9, .*none of its addresses \(10\.77")


def test_limits_and_devices(site, tmp_path):
    cluster = site.cluster
    for node, limits in {"n0": ["--nofile=40:40"], "n1": ["--memlock=65536:65536"]}.items():
        for pid in cluster[node].check("sh", "-c", SSHD_PIDS).split():
            cluster[node].check("prlimit", "--pid", pid, *limits)
    adapters = tmp_path / "infiniband"
    (adapters / "mlx5_0").mkdir(parents=True)
    devices = tmp_path / "devices"
    for slot in ("0000:17:00.0", "0000:65:00.0"):
        for name, text in {"vendor": "0x10de", "class": "0x030200", "device": "0x2330"}.items():
            path = devices / slot / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    cluster["n1"].check("mount", "-t", "tmpfs", "tmpfs", "/sys/class")
    cluster["n1"].check("mkdir", "/sys/class/infiniband")
    cluster["n1"].mount(adapters, "/sys/class/infiniband")
    cluster["n3"].mount(devices, "/sys/bus/pci/devices")
    assert_found(site.check(),
                 r"^error: n0: .*open files",
                 r"^error: n1: a process may lock 64 KiB of memory .*RDMA.*--ulimit memlock=-1",
                 r"^error: n3: no GPU can be used here: this machine has 2 NVIDIA GPUs, and the NVIDIA driver is not loaded")


def test_a_host_that_does_not_answer(site):
    site.cluster.ssh.stop_server(site.cluster["n3"])
    assert_found(site.check(), r"^error: .*n3.*refused")


def test_the_working_directory_and_the_interpreter_of_a_script(site):
    tool = site.program("code/tool", "#!/opt/nowhere/bash\n")
    site.cluster["n1"].hide(site.cluster.home)
    assert_found(site.check(hosts="n0,n1", program=tool),
                 r"^error: n1: the working directory /.*/project cannot be used there",
                 r"^error: n0: /.*/code/tool: its interpreter /opt/nowhere/bash is not there")


def test_what_programs_read(site):
    site.cluster["n1"].hide(site.folder / "code")
    result = site.check("--json", hosts="n0,n1")
    report = json.loads(result.stdout)
    assert result.returncode == 1 and not report["ok"]
    [finding] = report["findings"]
    assert (finding["severity"], finding["code"], finding["nodes"]) == ("error", "program", ["n1"])
    facts = {node["name"]: node["facts"] for node in report["nodes"]}
    assert facts["n0"]["program"]["torch"] == "2.9.1+cu128" and facts["n0"]["program"]["nccl"] == "2.27.5"


def test_preflight_starts_no_rank_where_something_is_wrong(site):
    site.replace("n1", site.script, "print('another one')\n")
    command = [TAAS_RUN, "--preflight", "--hosts", "n0,n1", "--nproc-per-node", 1, site.script]
    result = site.cluster.login.run(*command, env=site.environment, cwd=site.folder)
    assert result.returncode == 2 and result.stdout == "", result
    assert "has other contents there" in result.stderr
    fit = [*command[:3], "n0,n2", *command[4:]]
    result = site.cluster.login.run(*fit, env=site.environment, cwd=site.folder)
    assert (result.returncode, result.stdout) == (0, "train\n"), result
    assert_nothing_left(site.cluster)


def test_nodes_that_join(site):
    """Each side is called by its user; the first node's says what is found."""
    cluster = site.cluster
    token = {"TAAS_TOKEN": cluster.login.check(TAAS_RUN, "token").strip()}
    command = [TAAS_RUN, "check", "--nnodes", 2, "--nproc-per-node", 1, "--rdzv-endpoint",
               f"{cluster.address('n0')}:29400", site.script]
    site.replace("n1", site.script, "print('another one')\n")
    runs = [cluster[node].start(*command, env={**site.environment, **token}, cwd=site.folder) for node in ("n0", "n1")]
    first, second = [run.end_within(60) for run in runs]
    assert_found(first, r"^error: n[01]: .*has other contents there")
    assert second.returncode == 1 and "has other contents there" in second.stderr


def test_a_slow_link_is_named(cluster):
    """Before a run of many hours: how fast nodes reach each other, over the real backend."""
    pytest.importorskip("torch")
    limit = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "20mbit", "burst", "64kb", "latency", "400ms"]
    shaped = cluster["n2"].run(*limit)
    if shaped.returncode != 0:
        give_up(f"this kernel cannot slow a link down: {shaped.stderr}")
    result = cluster.login.run(TAAS_RUN, "check", "--speed", "--hosts", HOSTS, "--nproc-per-node", 1)
    assert result.returncode == 1, result
    assert re.search(r"^speed: 4 ranks compute .*; all-reduce over all of them .*; between nodes [\d.]+ MB/s to ", result.stdout, re.M)
    [line] = [line for line in result.stdout.splitlines() if line.startswith("slow: ") and "link" in line]
    assert line.startswith("slow: all links of n2 ("), line
    assert_nothing_left(cluster)
