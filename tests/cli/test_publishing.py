"""Which files are published, and when: what an exception, a signal or a kill has cut off is not, and is named."""

import os
import signal
import subprocess

import pytest
import random_nodes
import random_publishing
from waiting import DEADLINE_SECONDS, next_line, wait_until

FULL = "TAAS_FULL" in os.environ

WRITE = """
import os, sys, time
path = os.path.join(os.environ["TAAS_OUTPUT_DIR"], "model.pt")
def save(text, then=lambda: None):
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        then()
save("whole")
print("saved", flush=True)
while not os.path.exists("go"): time.sleep(0.01)
"""


def run_to_publication(launcher, *flags):
    """The first version of model.pt is published; then the program goes on."""
    process = launcher.start("--nproc-per-node", 1, *flags, "train.py")
    wait_until((launcher.folder / "taas-runs/latest/output/model.pt").exists, "the first version is published")
    (launcher.folder / "go").touch()
    return process


def outcome(launcher, process):
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    folder = launcher.folder / "taas-runs/latest"
    return err, (folder / "output/model.pt").read_text(), folder / ".staging/model.pt"


def test_what_an_exception_has_cut_off_does_not_replace_a_whole_file(launcher):
    (launcher.folder / "train.py").write_text(
        WRITE
        + """
def fail(): raise RuntimeError("boom")
save("ha", fail)
"""
    )
    process = run_to_publication(launcher)
    err, published, staged = outcome(launcher, process)
    assert process.returncode == 1
    assert (published, staged.read_text()) == ("whole", "ha")
    assert "nobody knows whether it is whole: model.pt (published: an earlier version); it stays in " in err


def test_what_a_restart_leaves_is_named(launcher):
    (launcher.folder / "train.py").write_text(
        WRITE
        + """
def fail(): raise RuntimeError("boom")
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": save("ha", fail)
save("second")
"""
    )
    process = run_to_publication(launcher, "--max-restarts", 1)
    err, published, _ = outcome(launcher, process)
    assert process.returncode == 0, err
    assert published == "second"
    assert "nobody knows whether it is whole: model.pt (published: an earlier version)" in err


@pytest.mark.gate
def test_what_a_signal_has_cut_off_does_not_replace_a_whole_file(launcher):
    (launcher.folder / "train.py").write_text(
        WRITE
        + """
def wait():
    print("writing", flush=True)
    while True: time.sleep(0.01)
save("ha", wait)
"""
    )
    process = run_to_publication(launcher)
    assert [next_line(process.stdout) for _ in range(2)] == ["saved\n", "writing\n"]
    process.send_signal(signal.SIGINT)
    err, published, staged = outcome(launcher, process)
    assert process.returncode == 130
    assert (published, staged.read_text()) == ("whole", "ha")
    assert "model.pt (published: an earlier version)" in err


@pytest.mark.gate
def test_what_a_handler_saves_is_published_however_the_rank_ends(launcher):
    (launcher.folder / "train.py").write_text(
        WRITE
        + """
import signal
def on_stop(*_):
    save("saved by the handler")
    sys.exit(143)
signal.signal(signal.SIGTERM, on_stop)
print("ready", flush=True)
while True: time.sleep(0.01)
"""
    )
    process = run_to_publication(launcher)
    assert [next_line(process.stdout) for _ in range(2)] == ["saved\n", "ready\n"]
    process.send_signal(signal.SIGTERM)
    err, published, _ = outcome(launcher, process)
    assert (process.returncode, published) == (143, "saved by the handler"), err
    assert "not published" not in err


def test_what_others_write_after_one_rank_has_ended_is_published(launcher):
    (launcher.folder / "train.py").write_text("""
import os, time
if os.environ["RANK"] == "1": raise SystemExit
while not os.path.exists("ended"): time.sleep(0.01)
open(os.path.join(os.environ["TAAS_OUTPUT_DIR"], "final.pt"), "w").write("whole")
while not os.path.exists("go"): time.sleep(0.01)
raise RuntimeError("the upload failed")
""")
    process = launcher.start("--nproc-per-node", 2, "train.py")
    journal = launcher.folder / "taas-runs/latest/journal.jsonl"
    wait_until(lambda: journal.exists() and "rank_exited" in journal.read_text(), "rank 1 has ended")
    (launcher.folder / "ended").touch()
    wait_until((launcher.folder / "taas-runs/latest/output/final.pt").exists, "it is published while rank 0 goes on")
    (launcher.folder / "go").touch()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 1
    assert "not published" not in err


def test_random_ends_publish_no_torn_file_and_miss_no_whole_one():
    """random_publishing.py says what is drawn and what has to hold; TAAS_FULL=1 makes 1,000 of them."""
    wrong = [
        f"{plan}: {line}"
        for plan, lines in random_publishing.run_many(range(1000 if FULL else 24), at_once=3)
        for line in lines
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("apart", [False, True], ids=["one folder", "folders of their own"])
def test_random_faults_of_nodes_publish_no_torn_file(apart):
    """random_nodes.py says what is drawn and what has to hold; TAAS_FULL=1 makes 300 of them."""
    results = random_nodes.run_many(range(300 if FULL else 6), at_once=2, apart=apart)
    wrong = [f"{plan}: {line}" for plan, lines in results for line in lines]
    assert not wrong, "\n".join(wrong)


def test_a_nodes_own_output_folder_is_not_ignored_without_a_word(launcher):
    """The first node's counts for all."""
    common = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{random_nodes.free_port()}",
        "--rdzv-id=own",
        "--no-python",
        "/bin/true",
    ]
    nodes = [
        launcher.start("--output", name, *common, env={"TAAS_TOKEN": "a secret of ours"}) for name in ("one", "two")
    ]
    told = [node.communicate(timeout=DEADLINE_SECONDS)[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], told
    assert sum("has no effect on this node: the first node has chosen " in text for text in told) == 1, told


@pytest.fixture
def shared(launcher):
    """A file system of the test's own."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    place = launcher.folder / "shared"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_each_view_of_a_folder_has_a_publisher_where_one_is_not_told_of_the_others_writes(launcher, shared):
    """As over a network file system: the second node sees the folder through an overlay.

    Its watches hear nothing of what is written below it, and the first one's watches are not of the overlay's files.
    """
    for name in ("taas-runs", "lower", "work"):
        (shared / name).mkdir()
    (launcher.folder / "train.py").write_text("""
import os, time
open(os.path.join(os.environ["TAAS_OUTPUT_DIR"], "model-" + os.environ["RANK"]), "w").write("whole")
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)
""")
    arguments = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{random_nodes.free_port()}",
        "--rdzv-id=views",
        "--preload=none",
        "--output",
        shared / "taas-runs",
        "train.py",
    ]
    env = {"TAAS_TOKEN": "a secret of ours", "GO": str(launcher.folder / "go")}
    first = launcher.start("--rdzv-conf=is_host=1", *arguments, env=env)
    mount = (
        f"mount -t overlay overlay -o lowerdir={shared}/lower,upperdir={shared}/taas-runs,workdir={shared}/work "
        f"{shared}/taas-runs"
    )
    second = launcher.start(
        "--rdzv-conf=is_host=0",
        *arguments,
        env=env,
        before=("unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"),
    )
    output = shared / "taas-runs/views/output"
    for name in ("model-0", "model-1"):
        wait_until((output / name).exists, f"{name} is published while the ranks go on")
    (launcher.folder / "go").touch()
    for node in (first, second):
        _, err = node.communicate(timeout=DEADLINE_SECONDS)
        assert node.returncode == 0, err
    assert {path.name: path.read_text() for path in output.iterdir()} == {"model-0": "whole", "model-1": "whole"}
