"""docs/examples/parallelism."""

import pathlib
import re
import sys

import pytest

from conftest import EXAMPLES, FULL, TAAS_RUN, free_port, need

PROGRAMS = EXAMPLES / "parallelism"
# Without the ends of lines: two processes that write into one pipe may both have written before either ends its line.
WEIGHTS = re.compile(r"rank (\d) of (\d) on (\S+(?: and \S+)?): loss (\d+\.\d{4}), weights (-?\d+\.\d{6})")


def written(folder: pathlib.Path, code: str) -> pathlib.Path:
    script = folder / "program.py"
    script.write_text(code)
    return script


def output(result) -> str:
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


def test_data_parallel(runner):
    need("torch")
    told = output(runner.python(PROGRAMS / "data_parallel.py"))
    assert told.splitlines() == [
        "no GPU: each batch stays whole, on the CPU",
        *(
            f"{where}: input ({size}, 6), output ({size}, 3)"
            for size in (16, 16, 12)
            for where in ("  inside the model", "outside")
        ),
    ]


def check_replicas(told: str, device: str) -> None:
    """Two ranks with batches of their own, and one model."""
    ranks = sorted(WEIGHTS.findall(told))
    assert [rank[:3] for rank in ranks] == [("0", "2", device), ("1", "2", device)], told
    assert ranks[0][3] != ranks[1][3] and ranks[0][4] == ranks[1][4], told


def test_toy_ddp_spawns_its_ranks(runner):
    need("torch")
    check_replicas(output(runner.python(PROGRAMS / "toy_ddp.py", "--port", free_port())), "cpu")


def test_toy_ddp_takes_the_launcher_s_ranks(runner):
    need("torch")
    check_replicas(
        output(runner.taas_run("-t", 3, "--nproc-per-node", 2, PROGRAMS / "toy_ddp.py", "--steps", 3)), "cpu"
    )


def test_toy_model_on_two_devices(runner):
    need("torch")
    told = output(runner.taas_run("-t", 3, "--nproc-per-node", 2, PROGRAMS / "toy_two_devices.py"))
    check_replicas(told, "cpu and cpu")


@pytest.mark.parametrize(
    "visible, per_rank, local_rank, ranks, gpus",
    [
        (2, 2, 1, 4, [0, 1]),  # --devices-per-rank 2
        (0, 2, 1, 4, []),
        (2, 1, 0, 1, [0, 1]),
        (4, 1, 1, 2, [2, 3]),
        (2, 1, 1, 2, []),
        (1, 1, 0, 1, []),
    ],
)
def test_gpus_of_a_replica(monkeypatch, visible, per_rank, local_rank, ranks, gpus):
    need("torch")
    monkeypatch.syspath_prepend(PROGRAMS)
    from toy_two_devices import own_gpus

    assert list(own_gpus(visible, per_rank, local_rank, ranks)) == gpus


def tables(told: str) -> dict[str, tuple[list[list[int]], str]]:
    """By the title of each stop of the sampler's tour: the indices of the ranks, and what is said about them."""
    found = {}
    for stop in re.split(r"^(?=\d)", told, flags=re.MULTILINE)[1:]:
        title, *rows, said = stop.splitlines()
        found[title] = ([[int(index) for index in row.partition(":")[2].split()] for row in rows], said.strip())
    return found


def test_sampler_tour(runner):
    need("torch")
    script = PROGRAMS / "sampler_tour.py"
    told = output(runner.python(script, "--samples", 7, "--ranks", 3))
    assert output(runner.taas_run("--nproc-per-node", 3, script, "--samples", 7)) == told
    without, even, padded, dropped, first, second, forgotten, both = tables(told).values()
    assert without[0] == [list(range(7))] * 3
    assert even == ([[0, 3], [1, 4], [2, 5]], "each sample once")
    assert padded == ([[0, 3, 6], [1, 4, 0], [2, 5, 1]], "dealt more than once: 0 1")
    assert dropped == ([[0, 3], [1, 4], [2, 5]], "left out: 6")
    for rows, said in (first, second):
        dealt = sum(rows, [])
        assert len(dealt) == 9 and set(dealt) == set(range(7))
        assert said == "dealt more than once: " + " ".join(str(index) for index in range(7) if dealt.count(index) > 1)
    assert forgotten == first != second
    assert both[1].startswith("left out: ") and [row[:2] for row in second[0]] == both[0]


@pytest.mark.parametrize("gpus, launcher", [(1, None), (2, "taas-run"), *([(2, "torchrun")] if FULL else [])])
def test_auto_mode_as_a_plain_script(runner, gpus, launcher):
    """A machine with so many GPUs, as far as the script knows; the processes that it starts find none, and use CPUs."""
    need("torch")
    if launcher == "taas-run":
        runner.environment["PATH"] = f"{pathlib.Path(TAAS_RUN).parent}:{runner.environment['PATH']}"
    elif launcher == "torchrun":
        runner.environment["PATH"] = str(pathlib.Path(sys.executable).parent)
    script = str(EXAMPLES / "auto_mode.py")
    driver = written(
        runner.folder,
        "import runpy, sys, torch\n"
        f"torch.cuda.device_count = lambda: {gpus}\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n",
    )
    result = runner.python(driver, script, "--epochs", 2)
    mode = "one process" if gpus == 1 else f"{gpus} processes"
    assert re.search(rf"^{mode} on cpu: loss 0\.\d+$", output(result), re.MULTILINE), result.stdout
    assert (runner.folder / "taas-runs").exists() == (launcher == "taas-run")
