"""What ranks other than 0 write to the project: kept apart, found again, dropped where rank 0 has written the same."""

import contextlib
import functools
import gzip
import hashlib
import http.server
import threading

import digits
import pytest

WRITES = """%%taas --gpus 2
import glob, os, pathlib, shutil, time
rank, rank_0_is_done = os.environ["RANK"], pathlib.Path("../rank-0-is-done")
while rank != "0" and not rank_0_is_done.exists():  # else it sees names of rank 0's that come and go
    time.sleep(0.01)
here = pathlib.Path("runs")
here.mkdir(exist_ok=True)
os.makedirs("runs/deep/er", exist_ok=True)
(here / "deep/er/note").write_text(rank)
with open("runs/log", "w") as file:
    file.write(f"first {rank}\\n")
with open(b"runs/log", "ab") as file:
    file.write(f"second {rank}\\n".encode())
pathlib.Path("runs/half.tmp").write_text(rank)
os.replace("runs/half.tmp", "runs/whole")
shutil.copy("given", f"runs/copy-{rank}")
with open("given", "r+") as file:
    file.write("G")
pathlib.Path("gone").write_text("x")
os.remove("gone")
(here / "emptied").mkdir()
(here / "emptied").rmdir()
os.symlink("whole", f"runs/link-{rank}")
own = lambda names: sorted(name for name in names if not name.endswith("-0") or rank == "0")
seen = own(os.listdir("runs")), own(entry.name for entry in os.scandir("runs")), sorted(glob.glob("runs/w*"))
texts = (pathlib.Path("runs/log").read_text(), open("given").read(), pathlib.Path(f"runs/link-{rank}").read_text(),
         os.path.exists("gone"))
sizes = os.stat("runs/log").st_size, os.path.getsize("runs/whole")
print((seen, texts, sizes, shutil.disk_usage(".").total > 0))
if rank == "0":
    rank_0_is_done.touch()
"""


def expected(rank: int) -> str:
    names = [f"copy-{rank}", "deep", f"link-{rank}", "log", "whole"]
    return str(
        ((names, names, ["runs/whole"]), (f"first {rank}\nsecond {rank}\n", "Given\n", str(rank), False), (17, 1), True)
    )


def test_a_rank_finds_what_it_has_written_and_nobody_else_does(kernel, project):
    project.mkdir(exist_ok=True)
    (project / "given").write_text("given\n")
    done = kernel.run(WRITES.replace("--gpus 2", "--gpus 2 --ranks 0,1")).check()
    shown = done.stream()
    assert f"[0] {expected(0)}\n" in shown, shown
    private = (project / "taas-runs" / "latest").resolve() / "private"
    assert f"[1] {expected(1)}\n" in shown.replace(f"{private}/rank-0001/project/", ""), shown
    assert (project / "given").read_text() == "Given\n" and (project / "runs/log").read_text() == "first 0\nsecond 0\n"
    said = done.stream("stderr")
    assert (
        "taas: rank 1 wrote given, runs/deep/er/note, runs/log and 1 more, too: only what rank 0 wrote was kept\n"
        in said
    )
    assert (
        f"taas: rank 1 wrote runs/copy-1, runs/link-1, but rank 0 did not: see {private}; --no-protect lets every rank"
        in said
    )
    assert [str(path.relative_to(private)) for path in private.rglob("*") if path.is_file()] == [
        "rank-0001/project/runs/copy-1"
    ]


@pytest.mark.gate
def test_all_ranks_save_and_one_checkpoint_is_there(kernel, project):
    text = """%%taas --gpus 4
import os, torch
rank = int(os.environ["RANK"])
for place in ("model.pt", "mödel.pt", "checkpoints/model.pt"):
    os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
    torch.save({"rank": rank, "weights": torch.full((1000,), rank)}, place)
    assert torch.load(place)["rank"] == rank
"""
    said = kernel.run(text).check().stream("stderr")
    assert (
        "taas: ranks 1-3 wrote checkpoints/model.pt, model.pt, mödel.pt, too: only what rank 0 wrote was kept\n" in said
    )
    kernel.run(
        "import torch\nprint([torch.load(name)['rank'] for name in ('model.pt', 'mödel.pt', 'checkpoints/model.pt')])"
    )
    assert kernel.run("torch.load('model.pt')['rank']").check().result == "0"
    assert not list((project / "taas-runs" / "latest").glob("private/**"))


def test_names_of_a_private_folder_have_the_type_of_its_path(kernel):
    text = """%%taas --gpus 2 --ranks 0,1
import os
folder = f"own-{os.environ['RANK']}"
os.mkdir(folder)
open(f"{folder}/file", "w").close()
print(os.listdir(folder), os.listdir(folder.encode()), [entry.name for entry in os.scandir(folder.encode())])
"""
    done = kernel.run(text).check()
    assert sorted(done.stream().splitlines()) == [f"[{rank}] ['file'] [b'file'] [b'file']" for rank in range(2)]


def test_what_would_fail_for_everybody_fails(kernel):
    text = """%%taas --gpus 2
import os
failures = []
for call in (lambda: open("missing/file", "w"), lambda: open("missing"), lambda: os.mkdir("missing/folder"),
             lambda: os.remove("missing"), lambda: os.rmdir("taas-runs"), lambda: open(".", "w"),
             lambda: os.replace("missing", "other")):
    try:
        call()
    except OSError as error:
        failures.append(type(error).__name__)
print(failures)
"""
    done = kernel.run(text.replace("--gpus 2", "--gpus 2 --ranks 0,1")).check()
    common = (
        "'FileNotFoundError', 'FileNotFoundError', 'FileNotFoundError', 'FileNotFoundError', {}, "
        "'IsADirectoryError', 'FileNotFoundError'"
    )
    assert f"[0] [{common.format(repr('OSError'))}]" in done.stream(), done.stream()
    assert (
        f"[1] [{common.format(repr('PermissionError'))}]" in done.stream()
        or f"[1] [{common.format(repr('OSError'))}]" in done.stream()
    )
    assert "wrote" not in done.stream("stderr")


def test_writes_are_refused_where_that_is_asked_for(kernel, project):
    kernel.run("import os, pathlib").check()
    done = kernel.run(
        '%%taas --gpus 2 --rank-output none\nif os.environ["RANK"] == "0":\n'
        '    pathlib.Path("model").write_text("0")\nelse:\n'
        '    pathlib.Path("model-1").write_text("1")'
    )
    assert done.error["evalue"].startswith("rank 1 of 2: PermissionError")
    assert f"Only rank 0 may write below {project}" in done.traceback and "--no-protect" in done.traceback
    assert not (project / "model-1").exists()


@pytest.mark.parametrize("option", ["--no-protect", "--rank-output all"])
def test_every_rank_writes_where_that_is_asked_for(kernel, project, option):
    kernel.run("import os, pathlib").check()
    kernel.run(f'%%taas --gpus 2 {option}\npathlib.Path(f"free-{{os.environ[\'RANK\']}}").write_text("x")').check()
    assert {path.name for path in project.iterdir()} >= {"free-0", "free-1"}


@contextlib.contextmanager
def served(folder):
    """The files of a folder over HTTP. Yields the address, and the list of what was asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()


@pytest.mark.parametrize("root", ["../data", "data"])
def test_a_dataset_is_downloaded_once(kernel, tmp_path, root):
    pytest.importorskip("torchvision")
    digits.write(tmp_path / "origin", 64, 32)
    files = sorted((tmp_path / "origin/MNIST/raw").glob("*-ubyte*"))
    packed = tmp_path / "served"
    packed.mkdir()
    for file in files:
        name = file.name.removesuffix(".gz") + ".gz"
        (packed / name).write_bytes(file.read_bytes() if file.suffix == ".gz" else gzip.compress(file.read_bytes()))
    resources = [(path.name, hashlib.md5(path.read_bytes()).hexdigest()) for path in sorted(packed.iterdir())]
    with served(packed) as (address, asked):
        text = f"""%%taas --gpus 4
from torchvision import datasets
datasets.MNIST.mirrors, datasets.MNIST.resources = [{address!r}], {resources!r}
print(len(datasets.MNIST({root!r}, train=True, download=True)),
      len(datasets.MNIST({root!r}, train=False, download=True)))
"""
        done = kernel.run(text.replace("--gpus 4", "--gpus 4 --ranks 0,1,2,3")).check()
        assert sorted(done.stream().splitlines()) == [f"[{rank}] 64 32" for rank in range(4)]
        by_all, asked[:] = sorted(asked), []
        kernel.run(text.partition("\n")[2].replace(repr(root), repr("alone"))).check()
    assert by_all == sorted(asked) and len(set(by_all)) == 4, "as one process asks"
    assert "wrote" not in done.stream("stderr")
