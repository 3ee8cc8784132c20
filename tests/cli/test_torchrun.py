"""What programs see of their launcher, and users of theirs, as PyTorch's own launcher tests have it: scripts of each kind,
flags and PET_*, log files, redirects and tee, restarts, error files, exit codes. docs/torchrun.md says what differs."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import zipapp

import pytest
from conftest import DEADLINE_SECONDS, wait_until

TOUCH = ("import os, pathlib, sys\n"
         "assert os.environ['SENTINEL'] == 'parent'\n"
         "for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'GROUP_RANK', 'ROLE_RANK', 'ROLE_NAME',\n"
         "             'ROLE_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'TORCHELASTIC_RESTART_COUNT',\n"
         "             'TORCHELASTIC_MAX_RESTARTS', 'TORCHELASTIC_RUN_ID', 'TORCHELASTIC_USE_AGENT_STORE'):\n"
         "    assert os.environ[name], name\n"
         "if '--fail' in sys.argv:\n"
         "    raise RuntimeError('asked to')\n"
         "pathlib.Path(sys.argv[1], os.environ['RANK']).write_text(' '.join(sys.argv[2:]))\n")
SHELL = '#!/bin/sh\n[ "$SENTINEL" = parent ] || exit 9\necho "creating $1/$RANK"\necho "warning of $RANK" >&2\n: > "$1/$RANK"\n'


@pytest.fixture
def touched(launcher) -> pathlib.Path:
    """Where every rank of `script` or `shell` leaves a file with its number."""
    launcher.environment["SENTINEL"] = "parent"
    folder = launcher.folder / "touched"
    folder.mkdir()
    return folder


@pytest.fixture
def script(launcher) -> str:
    return launcher.python(TOUCH)


@pytest.fixture
def shell(launcher) -> str:
    path = launcher.folder / "script.sh"
    path.write_text(SHELL)
    path.chmod(0o755)
    return str(path)


def assert_ranks(touched: pathlib.Path, count: int):
    found = {path.name for path in touched.iterdir()}
    assert found == {str(rank) for rank in range(count)}
    for path in touched.iterdir():
        path.unlink()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def succeeds(launcher, *arguments, env=None):
    result = launcher.run(*arguments, env=env)
    assert result.returncode == 0, result.stderr
    return result


# --- programs ---

def test_script_with_all_the_usual_flags(launcher, script, touched):
    succeeds(launcher, "--nnodes=1", "--nproc-per-node=4", "--rdzv-id=77", "--monitor-interval=1", "--start-method=spawn",
             script, touched, "--nnodes", "9")
    assert (touched / "3").read_text() == "--nnodes 9", "behind the script options are the script's"
    assert_ranks(touched, 4)


def test_script_with_a_static_rendezvous(launcher, script, touched):
    port = free_port()
    succeeds(launcher, "--nnodes=1", "--nproc-per-node=4", "--master-addr=localhost", f"--master-port={port}",
             "--node-rank=0", script, touched)
    assert_ranks(touched, 4)


def test_a_program_that_comes_through_a_pipe_is_left_to_the_rank(launcher):
    """It was read to find out what it imports: the rank found an empty program, and the run ended well."""
    reader, writer = os.pipe()
    os.write(writer, b"print('read to the end')")
    os.close(writer)
    result = launcher.run("--nproc-per-node=1", "--no-python", sys.executable, "/dev/stdin", stdin=reader)
    os.close(reader)
    assert result.returncode == 0 and "read to the end" in result.stdout, result.stderr


def test_a_program_that_is_a_pipe_holds_nobody_up(launcher):
    """Its text was waited for in the event loop, which then saw no signal and no end of a rank."""
    os.mkfifo(launcher.folder / "later.py")
    agent = launcher.start("--nproc-per-node=1", "later.py")
    with open(launcher.folder / "later.py", "w") as program:  # as soon as the rank reads it, or the launcher
        program.write("print('from the pipe')")
    out, err = agent.communicate(timeout=DEADLINE_SECONDS)
    assert agent.returncode == 0 and "from the pipe" in out, err


def test_a_program_from_the_standard_input_is_for_one_rank(launcher):
    """Rank 0 read it, the others ran nothing, and the run ended well."""
    (launcher.folder / "program.txt").write_text("print('ran')")
    for count, code, text in ((1, 0, "ran\n"), (2, 2, "")):
        with open(launcher.folder / "program.txt") as program:
            result = launcher.run("--nproc-per-node", count, "/dev/stdin", stdin=program)
        assert (result.returncode, result.stdout) == (code, text), result.stderr
    assert "save it to a file" in result.stderr


def test_folders_and_archives_run_as_python_runs_them(launcher, touched):
    package = launcher.folder / "package"
    package.mkdir()
    (package / "__main__.py").write_text(TOUCH)
    zipapp.create_archive(package, launcher.folder / "app.pyz")
    zipapp.create_archive(package, launcher.folder / "shebang.pyz", interpreter="/usr/bin/env python3")
    (launcher.folder / "shebang.pyz").chmod(0o644)
    for program in ("package", "./package", "app.pyz", "shebang.pyz"):
        succeeds(launcher, "--nproc-per-node=2", program, touched)
        assert_ranks(touched, 2)


def test_a_huge_program_is_not_read_to_find_out_what_it_imports(launcher):
    """All of it was read into the agent's memory, which heard no signal meanwhile."""
    for length, preload in ((1 << 10, "torch"), (1 << 20, "none (the program does not seem to use torch)")):
        script = launcher.python("#" * length + "\nimport torch\n")
        result = succeeds(launcher, "--nproc-per-node=2", "--dry-run", script)
        assert f"preload  {preload}\n" in result.stdout


def test_executable_without_python(launcher, shell, touched):
    succeeds(launcher, "--nproc-per-node=4", "--no-python", shell, touched)
    assert_ranks(touched, 4)


def test_module_and_no_python_contradict_each_other(launcher, shell, touched):
    for arguments, env in ((["--no-python", "--module"], {}), ([], {"PET_NO_PYTHON": "1", "PET_MODULE": "1"})):
        result = launcher.run("--nproc-per-node=2", *arguments, shell, touched, env=env)
        assert result.returncode == 2 and "--no-python" in result.stderr, result.stderr
    assert_ranks(touched, 0)


def test_module_with_arguments(launcher, touched):
    package = launcher.folder / "package"
    package.mkdir()
    (package / "__main__.py").write_text(TOUCH)
    succeeds(launcher, "--nproc-per-node=2", "-m", "package", touched, "--lr", "1", env={"PYTHONPATH": str(launcher.folder)})
    assert (touched / "1").read_text() == "--lr 1"


def test_run_path_takes_a_script_whatever_its_name(launcher, touched):
    (launcher.folder / "train").write_text(TOUCH)
    succeeds(launcher, "--run-path", "--nproc-per-node=2", "./train", touched)
    assert_ranks(touched, 2)


def test_standalone(launcher, script, touched):
    succeeds(launcher, "--nnodes=1", "--nproc-per-node=4", "--standalone", script, touched)
    assert_ranks(touched, 4)


# --- sizes and PET_ variables ---

@pytest.mark.parametrize("wanted, count", [("4", 4), ("cpu", len(os.sched_getaffinity(0))), (None, 1)])
def test_number_of_processes(launcher, shell, touched, wanted, count):
    succeeds(launcher, *([f"--nproc-per-node={wanted}"] if wanted else []), "--no-python", shell, touched)
    assert_ranks(touched, count)


@pytest.mark.parametrize("flag, value", [("--nproc-per-node", "unknown"), ("--nnodes", "2:20:30"), ("--nnodes", "3:2")])
def test_sizes_that_are_none(launcher, shell, touched, flag, value):
    result = launcher.run(flag, value, "--no-python", shell, touched)
    assert result.returncode == 2 and value in result.stderr, result.stderr


def test_pet_variables(launcher, shell, touched):
    pet = {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "4", "PET_RDZV_ID": "job9", "PET_MONITOR_INTERVAL": "1",
           "PET_START_METHOD": "spawn", "PET_NO_PYTHON": "1", "PET_MODULE": "0"}
    succeeds(launcher, shell, touched, env=pet)
    assert_ranks(touched, 4)
    assert launcher.run_folder().name == "job9"


def test_elastic_range_starts_with_the_nodes_that_are_there(launcher, script, touched):
    """The last call of one second is over, and nobody else has come."""
    place = ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}", "--rdzv-id=job8",
             "--rdzv-conf=join_timeout=60,last_call_timeout=1"]
    succeeds(launcher, "--nnodes=1:2", "--nproc-per-node=4", *place, script, touched, env={"TAAS_TOKEN": "a secret of ours"})
    assert_ranks(touched, 4)


def test_two_agents_on_one_machine(launcher, script, touched):
    common = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}",
              "--rdzv-id=job8"]
    agents = [launcher.start(*common, script, touched, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    assert_ranks(touched, 4)


@pytest.mark.parametrize("place", [["--nnodes=1:2", "--rdzv-endpoint=node7:29400"], ["--nnodes=2", "--rdzv-id=job8"],
                                   ["--nnodes=2", "--rdzv-endpoint=localhost:29400", "--rdzv-id=job8"]])
def test_nodes_that_meet_are_never_simulated_but_told_of_the_secret(launcher, script, touched, place):
    """In two terminals two complete runs went their way, and both ended well."""
    result = launcher.run("--nproc-per-node=1", *place, script, touched)
    assert result.returncode == 2 and "TAAS_TOKEN is not set" in result.stderr, result.stderr
    assert_ranks(touched, 0)


def listens(port: int) -> bool:
    needle = f":{port:04X}"
    return any(line.split()[1].endswith(needle) and line.split()[3] == "0A"
               for table in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:])


def test_who_cannot_join_is_told_why_while_it_waits_and_at_the_end(launcher):
    """Wherever it failed, all that was said was "the coordinator could not be reached", after minutes of silence."""
    port, secret = free_port(), "a secret of ours"
    rest = ["--nnodes=2", "--nproc-per-node=1", "--no-python", "/bin/true"]
    first = launcher.start("--rdzv-conf=is_host=1", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=job8", *rest,
                           env={"TAAS_TOKEN": secret})
    wait_until(lambda: listens(port), "the first node listens")
    attempts = [("localhost", "job8", "another secret of ours", "wrong secret (TAAS_TOKEN"),
                ("localhost", "job9", secret, "another run listens there (--rdzv-id"),
                ("no-such-host.invalid", "job8", secret, "no address is known for this name"),
                ("127.0.0.7", "job8", secret, "connection refused")]
    joining = [launcher.start("--rdzv-conf=is_host=0,join_timeout=4", f"--rdzv-endpoint={host}:{port}", f"--rdzv-id={name}",
                              *rest, env={"TAAS_TOKEN": token}) for host, name, token, _ in attempts]
    for process, (*_, reason) in zip(joining, attempts):
        waiting, end = process.communicate(timeout=DEADLINE_SECONDS)[1].strip().splitlines()
        assert "still looking for the coordinator" in waiting and reason in waiting
        assert "the coordinator could not be reached for 4 s" in end and reason in end
        assert process.returncode == 1
    first.terminate()
    first.communicate(timeout=DEADLINE_SECONDS)


NAMED_STORE = """
import os, socket, struct, sys
place = (os.environ["GIVEN_ADDRESS"], int(os.environ["GIVEN_PORT"]))
with socket.create_connection(place) as client:
    client.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE) + b"\\7")
    answer = client.makefile("rb").read(8)
assert len(answer) == 8, answer
assert struct.unpack("<q", answer)[0] >= 0
assert os.environ["MASTER_PORT"] == os.environ["GIVEN_PORT"], "torch takes no other port for the launcher's"
"""


def test_the_store_is_at_the_address_and_port_that_were_given(launcher):
    """init_method="tcp://localhost:29500" beside --master-addr localhost --master-port 29500: the first node itself was there."""
    port = free_port()
    common = ["--nnodes=2", "--nproc-per-node=1", "--master-addr=localhost", f"--master-port={port}",
              launcher.python(NAMED_STORE)]
    told = {"TAAS_TOKEN": "a secret of ours", "GIVEN_ADDRESS": "localhost", "GIVEN_PORT": str(port)}
    agents = [launcher.start(f"--node-rank={rank}", *common, env=told) for rank in range(2)]
    for agent in agents:
        _, said = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, said


ELASTIC = """
import os, pathlib, signal, sys, time
touched, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
generation, world = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["WORLD_SIZE"])
wish = pathlib.Path(os.environ["TAAS_STOP_REQUESTED"])
assert not wish.exists(), "the wish was one of an earlier generation"

def save(*_):
    assert generation > 0 or wish.exists()
    (touched / f"saved-{generation}-{rank}").touch()
    sys.exit(143)

signal.signal(signal.SIGTERM, save)
(touched / f"began-{generation}-{rank}-of-{world}").touch()
while generation == 0:
    time.sleep(0.01)
while not (touched / "newcomer").exists():
    time.sleep(0.01)
sys.exit(3 if world == 1 else 0)
"""


def connections(port: int) -> int:
    """How many have come to this port of this machine, and are still there."""
    needle = f":{port:04X}"
    return sum(line.split()[1].endswith(needle) and line.split()[3] == "01"
               for table in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:])


def test_a_node_that_is_told_to_stop_leaves_and_a_late_one_joins_with_the_next_generation(launcher, touched):
    """An evicted pod ended the training of all others with 143."""
    port = free_port()
    script, token = launcher.python(ELASTIC), {"TAAS_TOKEN": "a secret of ours"}
    common = ["--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=50", "--rdzv-backend=c10d",
              f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=job8", "--rdzv-conf=join_timeout=60,last_call_timeout=30"]
    first = launcher.start("--rdzv-conf=is_host=1", *common, script, touched, env=token)
    wait_until(lambda: listens(port), "the first node listens")
    evicted = launcher.start("--rdzv-conf=is_host=0", *common, script, touched, env=token)
    wait_until(lambda: len(list(touched.glob("began-0-?-of-2"))) == 2, "two nodes train")
    evicted.terminate()
    _, said = evicted.communicate(timeout=DEADLINE_SECONDS)
    assert evicted.returncode == 143, said
    assert "SIGTERM" in said
    assert {path.name for path in touched.glob("saved-*")} == {"saved-0-0", "saved-0-1"}
    wait_until(lambda: (touched / "began-1-0-of-1").exists(), "the other node trains alone")
    wait_until(lambda: connections(port) == 1, "the evicted node's connection is gone, and the first node's own is left")
    late = launcher.start("--rdzv-conf=is_host=0", *common, script, touched, env=token)
    wait_until(lambda: connections(port) == 2, "a late node has come")
    (touched / "newcomer").touch()
    for agent in (first, late):
        _, said = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, said
    told = (launcher.run_folder() / "journal.jsonl").read_text()
    assert '"node_leaves"' in told and not list(touched.glob("began-1-?-of-2"))
    assert len([path for path in touched.glob("began-*-of-2") if path.name[6] != "0"]) == 2


def test_without_enough_others_a_node_that_is_told_to_stop_ends_the_run(launcher, touched):
    port = free_port()
    script, token = launcher.python(ELASTIC), {"TAAS_TOKEN": "a secret of ours"}
    common = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=job8"]
    agents = [launcher.start(*common, script, touched, env=token) for _ in range(2)]
    wait_until(lambda: len(list(touched.glob("began-0-?-of-2"))) == 2, "two nodes train")
    agents[1].terminate()
    assert [agent.wait(DEADLINE_SECONDS) for agent in agents] == [143, 143]


def test_two_agents_on_a_machine_whose_own_name_is_loopback(launcher, script, touched):
    """As Debian has it in /etc/hosts: the first listened on the machine's interfaces alone, and the other never found it."""
    hosts = launcher.folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.0.1 this-machine\n")
    # Root needs no user namespace for this, and in a chroot it would get none.
    own_mounts = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    before = [*own_mounts, "/bin/sh", "-c", 'mount --bind "$1" /etc/hosts && shift && exec "$@"', "sh", hosts]
    if subprocess.run([*before, "/bin/true"], capture_output=True).returncode != 0:
        pytest.skip("no namespaces for a /etc/hosts of its own")
    common = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=this-machine:{free_port()}",
              "--rdzv-id=job8", "--rdzv-conf=join_timeout=20", script, touched]
    agents = [launcher.start(*common, before=before, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    assert_ranks(touched, 4)


def test_a_stranger_who_takes_names_keeps_no_agents_apart(launcher, script, touched):
    """Any local user could bind this one: both agents then waited for a coordinator until they timed out."""
    port = free_port()
    taken = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for name, addresses in zip(taken, ("127.0.0.1", "127.0.0.1 ::1", "::1 127.0.0.1")):  # as localhost resolves
        name.bind(f"\0taas-run at port {port} {addresses}")
    common = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}",
              "--rdzv-id=job8", "--rdzv-conf=join_timeout=20"]
    agents = [launcher.start(*common, script, touched, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    assert_ranks(touched, 4)


LISTENERS = """
import json, os, pathlib, socket, struct, sys

def sockets_of(process):
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]

def listening(process):
    mine = set(sockets_of(process))
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in mine:
                address, port = words[1].split(":")
                yield address, int(port, 16)

def asks_for_keys(port):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE) + b"\\7")
        try:
            return client.recv(8).hex()
        except ConnectionResetError:
            return ""

found = list(listening(os.getppid()))
answers = [asks_for_keys(port) for address, port in found if len(address) == 8]
master = asks_for_keys(int(os.environ["MASTER_PORT"]))
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(json.dumps([found, answers, master]))
"""


def test_only_the_first_node_serves_its_store_and_only_where_it_was_told(launcher, touched):
    """Every node served one on all addresses, with --interface lo too."""
    common = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}",
              "--rdzv-id=job8", "--rdzv-conf=join_timeout=20", "--interface=lo", launcher.python(LISTENERS), touched]
    agents = [launcher.start(*common, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    seen = [json.loads((touched / str(rank)).read_text()) for rank in range(2)]
    for listeners, _, master in seen:
        assert {address for address, _ in listeners} <= {"0100007F", "00000000000000000000000001000000"}
        assert len(master) == 16, "the store of the first node answers all ranks"
    assert [len(answer) for answer in seen[1][1]] == [0], "that of the other node answers nobody"


def join_alone(launcher, *arguments, **environment):
    return launcher.run("--nnodes=1:2", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}",
                        "--rdzv-id=job8", "--rdzv-conf=join_timeout=20,last_call_timeout=0.1", *arguments, env=environment)


STEP = {"SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "a,b", "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_NODEID": "1", "SLURM_LOCALID": "0",
        "SLURM_PROCID": "1"}


@pytest.mark.parametrize("kind", ["a pipe", "readable", "another user's"])
def test_a_stranger_who_takes_the_meeting_place_of_a_step_is_named(launcher, kind):
    """A pipe that nobody writes to held the other nodes up for ever."""
    place = launcher.folder / ".taas-77.0.0"
    os.mkfifo(place, 0o600) if kind == "a pipe" else place.touch(0o600)
    if kind == "readable":
        place.chmod(0o644)
    elif kind == "another user's" and os.getuid() == 0:
        os.chown(place, 65534, 65534)
    elif kind == "another user's":
        pytest.skip("only root can make a file of another user's")
    result = launcher.run("--nnodes=2", "--nproc-per-node=1", f"--output={launcher.folder}", "--no-python", "/bin/true", env=STEP)
    assert result.returncode == 2 and str(place) in result.stderr and "remove it" in result.stderr, result.stderr


def test_ranks_never_see_the_token(launcher):
    program = "/usr/bin/printenv"
    alone = launcher.run("--nproc-per-node=1", "--no-python", program, env={"TAAS_TOKEN": "a secret of ours"})
    assert alone.returncode == 0 and "RANK=0" in alone.stdout and "TAAS_TOKEN" not in alone.stdout
    joined = join_alone(launcher, "--no-python", program, TAAS_TOKEN="a secret of ours")
    assert joined.returncode == 0 and "RANK=0" in joined.stdout and "TAAS_TOKEN" not in joined.stdout


@pytest.mark.parametrize("mode, refused", [(0o600, False), (0o400, False), (0o640, True), (0o604, True), (0o622, True)])
def test_a_token_file_is_the_users_alone(launcher, tmp_path, mode, refused):
    token = tmp_path / "token"
    token.write_text(launcher.run("token").stdout)
    token.chmod(mode)
    result = join_alone(launcher, "--token-file", token, "--no-python", "/bin/true")
    assert result.returncode == (2 if refused else 0), result.stderr
    if refused:
        assert str(token) in result.stderr and f"{mode:04o}" in result.stderr and "chmod 600" in result.stderr


def test_a_token_is_made_and_a_weak_one_refused(launcher):
    made = [launcher.run("token") for _ in range(2)]
    assert all(result.returncode == 0 and len(result.stdout) == 65 and not result.stderr for result in made)
    assert made[0].stdout != made[1].stdout
    weak = join_alone(launcher, "--no-python", "/bin/true", TAAS_TOKEN="hunter2hunter2hunter2")
    assert weak.returncode == 2 and "taas-run token" in weak.stderr and "hunter2" not in weak.stderr


# --- spelling ---

def test_options_are_spelled_as_argparse_lets_users(launcher, shell, touched):
    result = succeeds(launcher, "--nproc=2", "-t=3", "--no-py", shell, touched)
    assert_ranks(touched, 2)
    assert "creating" in result.stdout and "[0]" in result.stdout and "[1]" in result.stdout


def test_a_name_that_is_no_signal_is_passed_over_and_said(launcher):
    result = succeeds(launcher, "--signals-to-handle=SIGTERM,SIGNOPE", "--no-python", "/bin/true")
    assert "SIGNOPE in --signals-to-handle" in result.stderr


def test_filters_are_refused_as_a_variable_too(launcher):
    result = launcher.run("--no-python", "/bin/true", env={"PET_DUPLICATE_STDOUT_FILTERS": "loss"})
    assert result.returncode == 2 and "PET_DUPLICATE_STDOUT_FILTERS comes with a later version" in result.stderr


def test_a_prefix_has_the_names_of_nodes_that_joined(launcher):
    result = join_alone(launcher, "-t", "3", "--log-line-prefix-template=<${hostname}>", "--no-python", "/bin/echo", "x",
                        TAAS_TOKEN="a secret of ours")
    assert f"<{os.uname().nodename}>x" in result.stdout, result.stdout


# --- output ---

def test_log_files_hold_both_streams_by_attempt_and_local_rank(launcher, shell, touched):
    succeeds(launcher, "--nproc-per-node=2", "--rdzv-id=job", "--log-dir=logs", "-r", "3", "--no-python", shell, touched)
    folder = launcher.folder / "logs/job/attempt_0"
    for rank in range(2):
        assert (folder / str(rank) / "stdout.log").read_text() == f"creating {touched}/{rank}\n"
        assert (folder / str(rank) / "stderr.log").read_text() == f"warning of {rank}\n"


def test_redirect_keeps_rank_0_off_the_console(launcher, shell, touched):
    result = succeeds(launcher, "--nproc-per-node=2", "--redirects=1", "--no-python", shell, touched)
    assert "creating" not in result.stdout and "warning of 0" in result.stderr


def test_tee_shows_all_with_the_prefix_of_the_environment(launcher, shell, touched):
    result = succeeds(launcher, "--nproc-per-node=4", "--redirects=3", "--tee=3", "--no-python", shell, touched,
                      env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank${rank}]: "})
    for rank in range(4):
        assert f"[rank{rank}]: creating {touched}/{rank}\n" in result.stdout
        assert f"[rank{rank}]: warning of {rank}\n" in result.stderr


def test_tee_by_local_rank(launcher, shell, touched):
    result = succeeds(launcher, "--nproc-per-node=3", "--tee=1:1,2:2", "--log-line-prefix-template=<${local_rank}>",
                      "--no-python", shell, touched)
    assert "<1>creating" in result.stdout and "<2>creating" not in result.stdout
    assert "<2>warning" in result.stderr and "<1>warning" not in result.stderr


def test_local_ranks_filter(launcher, shell, touched):
    result = succeeds(launcher, "--nproc-per-node=3", "--tee=3", "--local-ranks-filter=2", "--no-python", shell, touched)
    shown = [rank for rank in range(3) if f"creating {touched}/{rank}" in result.stdout]
    assert shown == [2]


def test_plug_in_for_logs_is_refused(launcher, script):
    result = launcher.run("--logs-specs=default", script)
    assert result.returncode == 2 and "--logs-specs" in result.stderr


# --- failures ---

def test_exception_of_a_worker(launcher, script, touched):
    result = launcher.run("--nproc-per-node=4", "--max-restarts=0", script, touched, "--fail")
    assert result.returncode == 1
    assert "RuntimeError: asked to" in result.stderr
    assert_ranks(touched, 0)


def test_attempts_count_up(launcher, shell):
    """A program that is no Python: of those that fail as they start, taas-run knows that they would fail again."""
    pathlib.Path(shell).write_text('#!/bin/sh\necho $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS\n'
                                   '[ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 3\n')
    succeeds(launcher, "--nproc-per-node=2", "--max-restarts=3", "--rdzv-id=job", "--log-dir=logs", "--no-python", shell)
    folder = launcher.folder / "logs/job"
    assert sorted(path.name for path in folder.iterdir()) == ["attempt_0", "attempt_1", "attempt_2"]
    assert (folder / "attempt_2/0/stdout.log").read_text() == (folder / "attempt_2/1/stdout.log").read_text() == "2 3\n"
    assert "0 3\n" in [(folder / f"attempt_0/{rank}/stdout.log").read_text() for rank in range(2)]


def test_error_file_is_of_the_rank_and_the_attempt_and_its_message_is_the_report(launcher, shell):
    """A program that writes the file as @record does, and dies without another word."""
    extra = {"py_callstack": 'Traceback\n  File "model.py", line 3, in load\nKeyError: layer7', "timestamp": "1"}
    message = {"message": {"message": "KeyError: layer7", "errorCode": 17, "extraInfo": extra}}
    (launcher.folder / "error.json").write_text(json.dumps(message))
    pathlib.Path(shell).write_text('#!/bin/sh\n[ $RANK = 1 ] || exec sleep 60\n'
                                   f'cp {launcher.folder}/error.json "$TORCHELASTIC_ERROR_FILE"\nexit 17\n')
    result = launcher.run("--nproc-per-node=2", "--max-restarts=1", "--no-python", shell)
    assert result.returncode == 17
    assert "KeyError: layer7" in result.stderr and "rank 1" in result.stderr, result.stderr
    for generation in range(2):
        path = launcher.run_folder() / f"generation-{generation}/rank-0001.error.json"
        assert json.loads(path.read_text()) == message
        assert not path.with_name("rank-0000.error.json").exists()


def test_whoever_started_the_launcher_gets_the_first_failure_in_its_own_error_file(launcher):
    outer = launcher.folder / "outer.json"
    outer.write_text("what an earlier run left")
    script = launcher.python("import os\nfrom torch.distributed.elastic.multiprocessing.errors import record\n"
                             "@record\ndef main():\n    if os.environ['RANK'] == '1':\n        raise KeyError('layer7')\nmain()\n")
    launcher.run("--nproc-per-node=2", script, env={"TORCHELASTIC_ERROR_FILE": str(outer)})
    told = json.loads(outer.read_text())["message"]
    assert "KeyError: 'layer7'" in told["message"] and "in main" in told["extraInfo"]["py_callstack"]
    assert told["errorCode"] == 1
    launcher.run("--nproc-per-node=1", "--no-python", "/bin/sh", "-c", "kill -SEGV $$", env={"TORCHELASTIC_ERROR_FILE": str(outer)})
    told = json.loads(outer.read_text())["message"]
    assert "SIGSEGV" in told["message"] and told["errorCode"] == 139
    outer.unlink()
    succeeds(launcher, "--nproc-per-node=1", "--no-python", "/bin/true", env={"TORCHELASTIC_ERROR_FILE": str(outer)})
    assert not outer.exists()


def test_virtual_local_rank_gives_each_rank_a_device_called_0(launcher):
    script = launcher.python("import os\nprint(os.environ['LOCAL_RANK'], os.environ['CUDA_VISIBLE_DEVICES'])\n")
    launcher.environment.pop("CUDA_VISIBLE_DEVICES", None)
    succeeds(launcher, "--nproc-per-node=2", "--virtual-local-rank", script)
    logs = [launcher.run_folder() / f"generation-0/rank-000{rank}.out" for rank in range(2)]
    assert [log.read_text() for log in logs] == ["0 0\n", "0 1\n"]
