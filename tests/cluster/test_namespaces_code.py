"""Nodes that do not have the program's files get them: taas-run --hosts and --sync, over ssh, with folders that each node has
for itself."""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess

import pytest
from conftest import TAAS_RUN
from processes import wait_until
from runs import assert_nothing_left

PROGRAM = """
import hashlib, json, os, pathlib, sys
import parts.numbers, settings
said = {"rank": int(os.environ["RANK"]), "cwd": os.getcwd(), "file": __file__, "value": settings.VALUE, "number": parts.numbers.NUMBER,
        "digest": hashlib.sha256(pathlib.Path("large").read_bytes()).hexdigest(),
        "text": pathlib.Path("text.txt").read_text(), "generation": int(os.environ["TORCHELASTIC_RESTART_COUNT"])}
print("said " + json.dumps(said), flush=True)
exec(os.environ.get("THEN", ""))
"""
FILES = {"train.py": PROGRAM, "settings.py": "VALUE = 1\n", "parts/numbers.py": "NUMBER = 1\n", "text.txt": "first", ".gitignore": "secret\n",
         "secret": "of this machine"}


LARGE = 3_000_001  # bytes: it comes in many ranges


@pytest.fixture
def project(cluster):
    """A repository in the user's home."""
    folder = cluster.home / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "large").write_bytes(random.Random(0).randbytes(LARGE))
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", folder, *words], check=True)
    return folder


def start(cluster, folder, *words, hosts="n0,n1", **environment):
    return cluster.login.start(TAAS_RUN, "--hosts", hosts, "--nproc-per-node", 1, "-t", "3", *words, "train.py", cwd=folder, env=environment)


def run(*words, **options):
    result = start(*words, **options).end()
    assert result.returncode == 0, result.stderr
    return result


def said(result) -> list:
    lines = [line.partition("said ")[2] for line in result.stdout.splitlines() if "said " in line]
    return sorted(map(json.loads, lines), key=lambda told: (told["generation"], told["rank"]))


def copies(cluster, name, folder) -> list:
    return cluster[name].check("find", folder, "-name", "code-*").split()


def test_a_node_without_the_folder(cluster, project):
    cluster["n1"].hide(project)
    told = said(run(cluster, project))
    assert [t["cwd"] for t in told][0] == str(project) and told[1]["cwd"].startswith(f"{project}/taas-runs/")
    assert pathlib.Path(told[1]["file"]).name == "train.py" and told[1]["file"].startswith(told[1]["cwd"])
    assert {(t["value"], t["number"], t["text"]) for t in told} == {(1, 1, "first")}
    assert {t["digest"] for t in told} == {hashlib.sha256((project / "large").read_bytes()).hexdigest()}
    assert copies(cluster, "n1", project) == []
    assert_nothing_left(cluster)


def test_each_edit_is_there_in_the_next_run(cluster, project):
    cluster["n1"].hide(project)
    for value in range(2, 6):
        (project / "settings.py").write_text(f"VALUE = {value}\n")
        (project / "parts/numbers.py").write_text(f"NUMBER = {-value}\n")
        assert {(t["value"], t["number"]) for t in said(run(cluster, project))} == {(value, -value)}
    cached = list((cluster.home / ".cache/taas-run/code").iterdir())
    assert len(cached) >= 8, "what a node has had, it asks for no more"
    (project / "settings.py").unlink()
    failed = start(cluster, project, hosts="n1").end()
    assert failed.returncode == 1 and "No module named 'settings'" in failed.stderr


def test_an_edit_is_there_in_the_next_generation(cluster, project):
    """On the node that shares the folder, and on the one that does not."""
    cluster["n1"].hide(project)
    then = "sys.exit(0) if settings.VALUE == 2 else __import__('signal').pause()"
    process = start(cluster, project, "--max-restarts", "1", THEN=then)
    journal = project / "taas-runs/latest/journal.jsonl"
    wait_until(lambda: journal.exists() and journal.read_text().count('"rank_spawned"') == 2, "both ranks run")
    lines = [process.stdout.readline() for _ in range(2)]
    (project / "settings.py").write_text("VALUE = 2\n")
    cluster["n1"].check("pkill", "-KILL", "-f", "train.py")
    result = process.end()
    assert result.returncode == 0, result.stderr
    result.stdout = "".join(lines) + result.stdout
    assert [(t["generation"], t["value"]) for t in said(result)] == [(0, 1), (0, 1), (1, 2), (1, 2)]


def test_files_that_cannot_be_read_again(cluster, project):
    """As on a file server that is away: the next generation has those of the one before."""
    cluster["n1"].hide(project)
    hangs = cluster.folder / "hangs"
    git = cluster.folder / "bin/git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\n[ ! -e {hangs} ] || exec sleep 600\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    then = "__import__('signal').pause() if said['generation'] == 0 else None"
    process = start(cluster, project, "--max-restarts", "1", THEN=then, PATH=f"{git.parent}:{os.environ['PATH']}")
    journal = project / "taas-runs/latest/journal.jsonl"
    wait_until(lambda: journal.exists() and journal.read_text().count('"rank_spawned"') == 2, "both ranks run")
    lines = [process.stdout.readline() for _ in range(2)]
    hangs.touch()
    cluster["n1"].check("pkill", "-KILL", "-f", "train.py")
    result = process.end()
    assert result.returncode == 0, result.stderr
    assert "the program's files could not be read again within 5 s: nodes keep those they have" in result.stderr
    result.stdout = "".join(lines) + result.stdout
    assert [(t["generation"], t["value"]) for t in said(result)] == [(0, 1), (0, 1), (1, 1), (1, 1)]


def test_other_files_are_named_and_replaced_where_that_is_asked_for(cluster, project, tmp_path):
    other = cluster.folder / "other"
    for name, text in FILES.items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(text)
    (other / "settings.py").write_text("VALUE = 7\n")
    shutil.copy(project / "large", other)
    cluster["n1"].mount(other, project)
    result = run(cluster, project)
    assert [t["value"] for t in said(result)] == [1, 7]
    assert f"n1: settings.py in {project} is not the same as where the run was started; --sync DIR" in result.stderr
    result = run(cluster, project, "--sync", ".")
    assert [t["value"] for t in said(result)] == [1, 1] and "not the same" not in result.stderr
    assert (other / "settings.py").read_text() == "VALUE = 7\n", "the user's own folder stays as it is"
    assert [t["cwd"] for t in said(run(cluster, project, "--no-sync"))] == [str(project)] * 2


def test_what_ranks_write_into_their_copy_stays(cluster, project):
    cluster["n1"].hide(project)
    then = "pathlib.Path('results.txt').write_text('of ' + os.environ['RANK']); pathlib.Path('text.txt').write_text('new')"
    result = run(cluster, project, THEN=then)
    copy, = copies(cluster, "n1", project)
    assert f"n1: ranks wrote results.txt, text.txt into {copy}, their copy of the program's folder" in result.stderr
    assert cluster["n1"].check("cat", f"{copy}/results.txt") == "of 1"
    assert sorted(cluster["n1"].check("ls", copy).split()) == ["results.txt", "text.txt"]


def test_a_folder_that_is_no_repository(cluster, project):
    subprocess.run(["rm", "-rf", project / ".git", project / ".gitignore"], check=True)
    cluster["n1"].hide(project)
    refused = start(cluster, project).end()
    assert refused.returncode == 2 and "n1 cannot take part" in refused.stderr
    assert {t["value"] for t in said(run(cluster, project, "--sync", project))} == {1}
    missing = start(cluster, project, "--sync", "nowhere").end()
    assert missing.returncode == 2 and "--sync nowhere: it is no folder" in missing.stderr
    assert len(missing.stderr.splitlines()) == 1


def test_too_much(cluster, project):
    with open(project / "weights", "wb") as file:
        file.truncate(65 << 20)
    result = start(cluster, project, "--sync", ".").end()
    assert result.returncode == 2 and "64 MiB" in result.stderr and ".gitignore" in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not (project / "taas-runs").exists()
