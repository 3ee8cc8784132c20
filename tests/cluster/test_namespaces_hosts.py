"""taas-run --hosts: from a login machine onto four others with the system's ssh."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from conftest import RANK_PROGRAM, TAAS_RUN
from processes import wait_until
from runs import assert_nothing_left, lines_about

HOSTS = "n0,n1,n2,n3"


@pytest.mark.gate
def test_ranks_are_where_the_list_of_hosts_says(cluster, records):
    program = records.command("report_rank.py", "--lr", "0.1")
    result = cluster.login.run(
        TAAS_RUN,
        "--hosts",
        "n2,n0,n3,n1",
        "--gpus",
        32,
        "--env",
        "NCCL_IB_HCA=mlx5_0",
        *program,
        env={"LEARNING": "deep", "NCCL_SOCKET_IFNAME": "ib7"},
    )
    assert result.returncode == 0, result.stderr
    told = records.environments()
    assert [t["hostname"] for t in told] == ["n2"] * 8 + ["n0"] * 8 + ["n3"] * 8 + ["n1"] * 8
    assert [int(t["GROUP_RANK"]) for t in told] == [rank // 8 for rank in range(32)]
    assert [int(t["LOCAL_RANK"]) for t in told] == [rank % 8 for rank in range(32)]
    assert {t["WORLD_SIZE"] for t in told} == {"32"} and {t["GROUP_WORLD_SIZE"] for t in told} == {"4"}
    assert {t["LEARNING"] for t in told} == {"deep"} and {t["cwd"] for t in told} == {str(cluster.home)}
    assert {tuple(t["argv"]) for t in told} == {("--lr", "0.1")}
    assert {t["MASTER_ADDR"] for t in told} <= {cluster.address("n2"), cluster.address("n2", 6)}
    assert {t["GLOO_SOCKET_IFNAME"] for t in told} == {"eth0"}
    assert {t["NCCL_IB_HCA"] for t in told} == {"mlx5_0"} and not any("NCCL_SOCKET_IFNAME" in t for t in told)
    assert_nothing_left(cluster)


@pytest.mark.parametrize("preload", ["none", "json"])
def test_what_is_no_utf8_arrives_as_it_is(cluster, records, preload):
    """Arguments, variables, names of folders and of the run's folder are bytes; E9 is Latin-1's é."""
    latin = os.fsdecode(b"caf\xe9 \xff\xfe")
    folder = cluster.home / latin
    folder.mkdir()
    result = cluster.login.run(
        TAAS_RUN,
        "--hosts",
        "n0,n1",
        "--gpus",
        2,
        "--preload",
        preload,
        "--output",
        latin,
        *records.command("report_rank.py", latin),
        env={"LATIN": latin},
        cwd=folder,
    )
    assert result.returncode == 0, result.stderr
    for told in records.environments():
        assert told["argv"] == [latin] and told["LATIN"] == latin and told["cwd"] == str(folder)
        assert told["TAAS_OUTPUT_DIR"].startswith(str(folder / latin) + "/")
    assert [path.name for path in folder.iterdir()] == [latin]


@pytest.mark.gate
def test_torch_over_four_machines(cluster, records):
    pytest.importorskip("torch")
    result = cluster.login.run(TAAS_RUN, "--hosts", HOSTS, "--nproc-per-node", 2, *records.command("reduce_rank.py"))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "total 28 of 8\n"


def test_hosts_by_ipv6_address(cluster, records):
    hosts = ",".join(f"[{cluster.address(name, 6)}]:2" for name in ("n0", "n1"))
    result = cluster.login.run(TAAS_RUN, "--hosts", hosts, "--gpus", 4, *records.command("report_rank.py"))
    assert result.returncode == 0, result.stderr
    assert [t["hostname"] for t in records.environments()] == ["n0", "n0", "n1", "n1"]


def test_a_hostfile_and_the_slots_in_it_and_the_launcher_may_be_one_of_the_hosts(cluster, records):
    (cluster.home / "hosts.txt").write_text("# the cluster\nn1 slots=2\nn0 slots=1\n")
    result = cluster["n1"].run(TAAS_RUN, "--hostfile", "hosts.txt", "--gpus", 3, *records.command("report_rank.py"))
    assert result.returncode == 0, result.stderr
    assert [t["hostname"] for t in records.environments()] == ["n1", "n1", "n0"]


@pytest.mark.gate
def test_the_exit_code_and_the_node_of_the_culprit(cluster, ranks):
    result = cluster.login.run(TAAS_RUN, "--hosts", HOSTS, "--gpus", 8, "--gpus-per-node", 2, *ranks("5=exit:42"))
    assert result.returncode == 42, result.stderr
    assert re.search(r"rank 5\b.*exited with code 42", result.stderr), result.stderr
    assert any("rank 5" in line for line in lines_about("n2", result.stderr)), result.stderr
    assert_nothing_left(cluster)


@pytest.mark.gate
def test_an_interrupt_stops_all_machines(cluster, ranks, barrier):
    run = cluster.login.start(TAAS_RUN, "--hosts", HOSTS, "--gpus", 8, "--gpus-per-node", 2, *ranks("*=graceful:0"))
    wait_until(lambda: len(list(barrier.glob("ready-0-?"))) == 8, "all ranks are up")
    run.send_signal(signal.SIGINT)
    result = run.end()
    assert result.returncode == 128 + signal.SIGINT, result.stderr
    assert_nothing_left(cluster)


@pytest.mark.gate
def test_kill_9_of_the_launcher_leaves_nothing_anywhere(cluster, ranks, barrier):
    run = cluster.login.start(TAAS_RUN, "--hosts", HOSTS, "--gpus", 8, "--gpus-per-node", 2, *ranks("*=orphan"))
    wait_until(lambda: len(list(barrier.glob("orphan-?"))) == 8, "all ranks have left a grandchild")
    run.kill()
    run.end()
    assert_nothing_left(cluster)


@pytest.mark.gate
def test_the_secret_is_on_no_command_line_and_in_no_environment(cluster, ranks, barrier):
    run = cluster.login.start(TAAS_RUN, "--hosts", HOSTS, "--gpus", 8, "--gpus-per-node", 2, *ranks("*=stay"))
    wait_until(lambda: len(list(barrier.glob("ready-0-?"))) == 8, "all ranks are up")
    seen = {pid: line for machine in cluster.processes().values() for pid, line in machine.items()}
    assert len(seen) > 8
    for pid, line in seen.items():
        try:
            environment = pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace")
        except OSError:  # it has just ended
            environment = ""
        assert not re.search("[0-9a-fA-F]{64}", line + environment), "256 bits in hexadecimal digits"
    run.terminate()
    run.end()


# --- hosts that cannot take part: one line each, that names the host ---


def assert_refused(cluster, records, *words):
    result = cluster.login.run(
        TAAS_RUN, "--hosts", HOSTS, "--gpus", 8, "--gpus-per-node", 2, *records.command("report_rank.py")
    )
    assert result.returncode != 0
    about = lines_about("n2", result.stderr)
    assert len(about) == 1 and all(word in about[0] for word in words), result.stderr
    assert len(result.stderr.splitlines()) <= 3, result.stderr
    assert not records.environments(), "no rank was started anywhere"
    assert_nothing_left(cluster)


def test_all_hosts_that_fail_are_named_once(cluster, records):
    """Also those that fail when the run is lost already."""
    for name in ("n0", "n1", "n3"):
        cluster.ssh.stop_server(cluster[name])
    slow = cluster.home / "slow-ssh"  # says of the last one long after the others have failed
    slow.write_text(
        f"#!/bin/sh\ncase \"$*\" in *' n3 '*) "
        f'until [ -e {cluster.home}/go ]; do sleep 0.05; done;; esac\nexec ssh "$@"\n'
    )
    slow.chmod(0o755)
    run = cluster.login.start(
        TAAS_RUN, "--hosts", HOSTS, "--gpus", 8, "--gpus-per-node", 2, "--ssh", slow, *records.command("report_rank.py")
    )
    wait_until(lambda: cluster["n2"].processes("--as-agent"), "the others have been tried")
    (cluster.home / "go").touch()
    result = run.end()
    assert result.returncode == 2, result.stderr
    assert "3 hosts cannot take part" in result.stderr
    for name in ("n0", "n1", "n3"):
        assert len(re.findall(rf"{name}: ssh: .* refused", result.stderr)) == 1, result.stderr
    assert not records.environments()
    assert_nothing_left(cluster)


def test_a_node_that_can_only_read_the_output_folder(cluster, records):
    runs = cluster.home / "taas-runs"
    runs.mkdir()
    cluster["n2"].mount(runs, runs)
    cluster["n2"].check("mount", "-o", "remount,bind,ro", runs)
    assert_refused(cluster, records, "n2 cannot take part", f"cannot write to {runs}", "--output")


def test_a_warning_names_its_host(cluster):
    """Of a log file that cannot be written: its disk on n1 is full."""
    runs = cluster.home / "taas-runs"
    runs.mkdir()
    cluster["n1"].check("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", runs)
    result = cluster.login.run(
        TAAS_RUN,
        "--hosts",
        "n0,n1",
        "--nproc-per-node",
        1,
        "--no-python",
        "sh",
        "-c",
        "[ $RANK = 0 ] || head -c 4000000 /dev/zero",
    )
    assert result.returncode == 0, result.stderr
    warnings = [line for line in result.stderr.splitlines() if "training goes on" in line]
    assert warnings and all(line.startswith("taas-run: n1: ") for line in warnings), result.stderr


@pytest.mark.gate
def test_a_host_that_refuses(cluster, records):
    cluster.ssh.stop_server(cluster["n2"])
    assert_refused(cluster, records, "refused")


def test_a_host_that_hangs_in_connect(cluster, records):
    cluster.network.cut("n2")
    assert_refused(cluster, records, "timed out")


def test_a_host_that_is_another_one_than_ssh_knows(cluster, records):
    cluster.ssh.change_host_key(cluster["n2"])
    assert_refused(cluster, records, "Host key verification failed")


def test_a_missing_binary(cluster, records):
    cluster["n2"].hide(pathlib.Path(TAAS_RUN).parent)
    assert_refused(cluster, records, "taas-run")


def test_a_binary_that_is_elsewhere_on_all_hosts(cluster, records):
    elsewhere = cluster.folder / "elsewhere"
    elsewhere.symlink_to(TAAS_RUN)
    result = cluster.login.run(
        TAAS_RUN,
        "--hosts",
        "n0,n1",
        "--gpus",
        2,
        "--gpus-per-node",
        1,
        "--remote-taas-run",
        elsewhere,
        *records.command("report_rank.py"),
    )
    assert result.returncode == 0, result.stderr


def test_another_version(cluster, records):
    """The same program, but for what it says its version is."""
    version = subprocess.run([TAAS_RUN, "--version"], capture_output=True, text=True).stdout.split()[-1]
    binary = pathlib.Path(TAAS_RUN).read_bytes()
    other = version[:-1] + ("8" if version[-1] != "8" else "7")
    changed = cluster.folder / "other-release"
    changed.write_bytes(binary.replace(version.encode(), other.encode()))
    changed.chmod(0o755)
    assert subprocess.run([changed, "--version"], capture_output=True, text=True).stdout.split()[-1] == other
    cluster["n2"].mount(changed, TAAS_RUN)
    assert_refused(cluster, records, version, other)


def test_a_program_that_is_missing_on_one_host(cluster, barrier):
    folder = cluster.folder / "programs"
    folder.mkdir()
    program = shutil.copy(RANK_PROGRAM, folder)
    cluster["n2"].hide(folder)
    result = cluster.login.run(TAAS_RUN, "--hosts", HOSTS, "--gpus", 8, "--gpus-per-node", 2, program, "*=exit:0")
    assert result.returncode != 0
    assert len(lines_about("n2", result.stderr)) == 1, result.stderr


# --- one machine ---


def test_one_machine_listens_on_loopback_alone(cluster, ranks, barrier):
    run = cluster["n0"].start(TAAS_RUN, "--nproc-per-node", 2, *ranks("*=stay"))
    wait_until(lambda: len(list(barrier.glob("ready-0-?"))) == 2, "all ranks are up")
    places = cluster["n0"].listening()
    run.terminate()
    run.end()
    assert len(places) > 2, "sshd, with IPv4 and IPv6, and at least the store"
    assert {host for host, port in places if port != 22} <= {"127.0.0.1", "::1"}, places
