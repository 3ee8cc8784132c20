"""Programs of one process are what they are without a launcher."""

from conftest import PROGRAMS, need


def test_data_parallel_is_unchanged(runner):
    need("torch")
    script = PROGRAMS / "data_parallel.py"
    alone, below = runner.python(script, "--lr", "1"), runner.taas_run(script, "--lr", "1")
    assert alone.returncode == below.returncode == 0, below.stderr
    assert below.stdout == alone.stdout
    assert len(alone.stdout.splitlines()) == 5


def test_a_script_that_knows_nothing_of_ranks(runner):
    script = runner.folder / "plain.py"
    script.write_text("import sys\nprint(sys.argv[1:], __name__, sys.stdin.read())\nsys.exit(5)\n")
    alone, below = runner.python(script, "a"), runner.taas_run(script, "a")
    assert (below.returncode, below.stdout) == (alone.returncode, alone.stdout) == (5, "['a'] __main__ \n")
