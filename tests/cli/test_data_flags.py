"""The flags of data workers: wrong values end in one line, and --dry-run shows what the others ask for."""

import json

import pytest


WRONG = [
    (["--cpus", "x"], "--cpus x: not a whole number"),
    (["--cpus", "-1"], "--cpus -1: not a whole number"),
    (["--data-workers", "x"], "--data-workers x: not a whole number"),
    (["--units", "0", "--cpus", "1"], "--units 0: not a whole number from 1"),
    (["--units", "x", "--cpus", "1"], "--units x: not a whole number from 1"),
    (["--units", "1.5", "--cpus", "1"], "--units 1.5: not a whole number from 1"),
    (["--units", "5"], "--units 5: only with --cpus"),
    (["--data-cores", "0", "--cpus", "1"], "--data-cores 0: not a whole number"),
    (["--data_cores", "2"], "--data-cores 2: only with --cpus"),
    (["--data-hosts", "a,b", "--cpus", "3"], "--cpus 3: --data-hosts a,b names 2 only"),
    (["--data-hosts", "a,,b"], "--data-hosts a,,b: "),
    (["--data-hosts", "a:0"], "--data-hosts a:0: "),
    (["--data-hosts", "a", "--cpus", "0"], "--cpus 0 leaves them nothing to do"),
    (["--loader", "data", "--cpus", "1"], "--loader data: not MODULE:NAME"),
    (["--loader", "a b:c", "--cpus", "1"], "--loader a b:c: not MODULE:NAME"),
    (["--loader", "data:train", "--loader", "val", "--cpus", "1"], "not MODULE:NAME"),
    (["--loader", "data:train", "--loader", "data:val"], "--loader data:train,data:val: only with --cpus"),
    (["--loader", "data:train"], "--loader data:train: only with --cpus"),
    (["--loader", "data:train", "--cpus", "0"], "--cpus 0 has no CPU machine to prepare it"),
    (["--data-buffer", "10", "--cpus", "1"], "--data-buffer 10: less than 1M"),
    (["--data-buffer", "8Q", "--cpus", "1"], "--data-buffer 8Q: not a size"),
    (["--data-buffer", "-1G", "--cpus", "1"], "--data-buffer -1G: not a size"),
    (["--data-compress", "gzip", "--cpus", "1"], "--data-compress gzip: not one of none, lz4, zstd"),
    (["--data-on-error", "ignore", "--cpus", "1"], "--data-on-error ignore: neither raise nor skip"),
    (["--data-plain"], "--data-plain: only with --cpus"),
    (["--cpus", "1", "--hosts", "a,b", "--gpus", "2"], "--cpus 1: over several machines --data-hosts has to name them"),
]


@pytest.mark.gate
@pytest.mark.parametrize("arguments,line", WRONG, ids=[" ".join(a) for a, _ in WRONG])
def test_wrong_values_are_one_line(launcher, arguments, line):
    done = launcher.run(*arguments, launcher.python(""))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and line in done.stderr, done.stderr
    assert not (launcher.folder / "taas-runs").exists()


@pytest.mark.gate
def test_dry_run_shows_the_machines(launcher):
    script = launcher.python("")
    asked = ("--cpus", 2, "--data-cores", 3, "--units", 10, "--loader", "data:train")
    text = launcher.run("--dry-run", "--verbose", *asked, script)
    assert text.returncode == 0
    assert "2 CPU machines, simulated here, with 3 worker(s) each" in text.stdout
    assert "10 samples from each loader, data:train prepared before ranks start" in text.stdout
    assert "TAAS_ROLE=rank" in text.stdout
    over_ssh = launcher.run("--dry-run", "--json", "--data-hosts", "a:4,b", script)
    assert json.loads(over_ssh.stdout)["data"]["hosts"] == ["a", "b"]
