"""The head of a cell and the shapes' files; no kernel."""

import pytest
from taas.notebook import options, pragma, shapes
from taas.notebook.errors import CellUsage


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "below")


def head(*lines):
    return pragma.read_head(list(lines))


def launcher_words(line, *lines):
    return options.parse(line, head(*lines)).launcher


@pytest.mark.gate
@pytest.mark.parametrize(
    "lines",
    [
        ["#!g2.8\n", "x\n"],
        ["#!g2.8\n", "#pragma taas --gpus 8\n", "x\n"],
        ["#pragma taas --gpus 8 --cpus 2 --units 4000000\n"],
        ["# pragma taas\n"],
        ["#!c1.4\n", "#pragma taas --gpus 2\n"],
        ["#!mystery\n"],
        ["# about\n", "\n", "#pragma taas --gpus 2\n", "x\n"],
        ["# about\n", "#!g2.8\n"],
        ["#PRAGMA TAAS --gpus 2\n"],
        ["#!G2.8\n"],
    ],
)
def test_such_cells_become_the_magic(lines):
    assert pragma.as_magic(lines) == [f"%%taas {pragma.OF_PRAGMA}\n", *lines]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["x = 1\n", "#pragma taas --gpus 8\n"],
        ["#!/bin/sh\n"],
        ["#!/usr/bin/env python\n", "x\n"],
        ["# taas\n"],
        ["#!c1.4\n", "x\n"],
        ["#pragma taasx\n"],
        ["%%bash\n", "#!g2.8\n"],
        ["# about\n", "x\n", "#pragma taas\n"],
        ["# about\n", "#!C1.4\n", "x\n"],
    ],
)
def test_others_stay_as_they_are(lines):
    assert pragma.as_magic(lines) == lines


@pytest.mark.parametrize(
    "text, line",
    [
        ("import os\n#pragma taas --gpus 2\nx", 2),
        ("#pragma taas\nx\n# pragma TAAS --pull x", 3),
        ("%%time\nx\n#pragma taas --gpus 2", 3),
        ("%%taas --gpus 2\nx\n#pragma taas --pull x", 3),
        ("x = 1\n!ls\n%time x\n#pragma taas", 4),
        ("def f(:\n#pragma taas", 2),
    ],
)
def test_a_pragma_below_the_head_is_found(text, line):
    assert pragma.misplaced(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "#pragma taas\nx",
        "# about\n\n#!g2.8\n#pragma taas\nx",
        "%%taas\n#pragma taas --gpus 2\nx",
        "%%bash\nls\n#pragma taas",
        "text = '''\n#pragma taas\n'''",
        "x = 1  # pragma taas",
        "x\n#pragma other",
        "#pragma taas",
    ],
)
def test_others_are_none_or_stand_where_they_belong(text):
    assert pragma.misplaced(text) is None


@pytest.mark.gate
@pytest.mark.parametrize(
    "line, shape, workers",
    [
        ("--cpus 1", "#!c1.4", ["--data-cores", "4"]),
        ("--cpus 2 --data-cores 3", "#!c1.4", []),
        ("--data-workers 1", "#!C1.80", ["--data-cores", "80"]),
        ("", "#!c1.4", []),
        ("--cpus 1", "#!g2.8", []),
        ("--cpus 1 --data-shape c1.4", "#!g2.8", ["--data-cores", "4"]),
        ("--cpus 1 --data-shape=c1.8 --data-cores=2", "#!g2.8", []),
        ("--cpus 1 --data-shape c1.8", "#!c1.4", ["--data-cores", "4"]),
    ],
)
def test_the_cores_of_a_cpu_machines_shape_are_its_data_workers(line, shape, workers):
    words = launcher_words("", shape, f"#pragma taas --gpus 2 {line}")
    given = (
        ["--data-cores", "3"] if "--data-cores 3" in line else ["--data-cores=2"] if "--data-cores=2" in line else []
    )
    place = [
        word for word in words if word.startswith("--data-cores") or words[words.index(word) - 1] == "--data-cores"
    ]
    assert place == given + workers


@pytest.mark.parametrize(
    "line, why",
    [
        ("--data-shape c1.4", "--data-shape c1.4: only with --cpus N, the number of CPU machines"),
        (
            "--cpus 1 --data-shape g2.8",
            "--data-shape g2.8: how many cores it has is not known here; --data-cores N says",
        ),
        (
            "--cpus 1 --data-shape c9.3",
            "--data-shape c9.3: how many cores it has is not known here; --data-cores N says",
        ),
        ("--cpus 1 --data-shape", "--data-shape: a value is missing"),
    ],
)
def test_a_data_shape_without_cores_is_refused(line, why):
    with pytest.raises(CellUsage) as refused:
        launcher_words(f"--gpus 2 {line}")
    assert str(refused.value).startswith(why)


def test_a_shape_of_ones_own_has_cores(tmp_path):
    (tmp_path / "project" / shapes.PROJECT_FILE).write_text(
        '["c1.4"]\ngpus = 0\n["x.7"]\ngpus = 0\ncores = 3\n["wrong"]\ncores = 0\n'
    )
    assert launcher_words("", "#!x.7", "#pragma taas --gpus 2 --cpus 1")[-2:] == ["--data-cores", "3"]
    assert launcher_words("", "#!c1.4", "#pragma taas --gpus 2 --cpus 1")[-2:] == ["--data-cores", "4"]
    with pytest.raises(CellUsage, match="cores of wrong is 0: at least 1 is needed"):
        shapes.find("wrong")


@pytest.mark.gate
def test_a_known_shape_says_what_a_node_has():
    assert launcher_words("", "#!g2.8") == ["--gpus-per-node", "8", "--gpus", "8"]
    assert launcher_words("", "#!g2.8", "#pragma taas --gpus 16") == ["--gpus", "16", "--gpus-per-node", "8"]
    assert launcher_words("--gpus 2 --shape g1.4") == ["--gpus", "2", "--gpus-per-node", "4"]
    assert launcher_words("", "#!c1.4", "#pragma taas --gpus 2") == ["--gpus", "2"]
    assert launcher_words("", "#!G1.4") == ["--gpus-per-node", "4", "--gpus", "4"]


@pytest.mark.gate
@pytest.mark.parametrize("lines", [["#!g9.99"], ["#!mystery"], ["#!h9.16", "#pragma taas --pull x"]])
def test_an_unknown_shape_alone_is_refused(lines):
    with pytest.raises(CellUsage) as error:
        options.parse("", head(*lines))
    said = str(error.value)
    assert said.startswith(f"unknown shape {lines[0][2:]}: say how many GPUs") and "known are g1.1, " in said
    assert "\n" not in said


def test_an_unknown_shape_is_no_matter_where_the_size_is_said():
    assert launcher_words("", "#!g9.99", "#pragma taas --gpus 2") == ["--gpus", "2", "--gpus-per-node", "99"]
    assert launcher_words("", "#!c9.99", "#pragma taas") == []


@pytest.mark.parametrize(
    "name, gpus, words",
    [
        ("h9.16", 16, "taken for nodes with 16 GPUs"),
        ("x.1", 1, "taken for nodes with 1 GPU;"),
        ("c9.2", 0, "taken for CPU machines without GPUs"),
        ("mystery", None, "taken for this machine as it is"),
    ],
)
def test_an_unknown_shape_says_what_it_was_taken_for(name, gpus, words):
    shape = shapes.find(name)
    assert shape.gpus == gpus
    assert words in shape.taken_for and "shapes.toml" in shape.taken_for


@pytest.mark.gate
def test_the_projects_file_is_stronger_than_the_users(tmp_path):
    (tmp_path / "config" / "taas").mkdir(parents=True)
    (tmp_path / "config" / "taas" / "shapes.toml").write_text('["big.4"]\ngpus = 4\n["g2.8"]\ngpus = 6\n')
    (tmp_path / "project" / shapes.PROJECT_FILE).write_text(
        '["g2.8"]\ngpus = 8\noptions = ["--slurm", "--partition", "a100"]\n'
    )
    assert shapes.find("big.4") == shapes.Shape("big.4", 4)
    assert launcher_words("", "#!g2.8", "#pragma taas --gpus 16") == [
        "--gpus",
        "16",
        "--slurm",
        "--partition",
        "a100",
        "--gpus-per-node",
        "8",
    ]


@pytest.mark.parametrize(
    "text, words",
    [
        ('["g2.8"]\ngpu = 8', "'gpu'; known are: gpus, cores, options"),
        ('["g2.8"]\ngpus = "8"', "gpus of g2.8 is '8', not a number"),
        ("[g2.8", "cannot be read"),
        ('"g2.8" = 3', "g2.8 is not a table"),
    ],
)
def test_a_wrong_file_is_named(text, words, tmp_path):
    path = tmp_path / "project" / shapes.PROJECT_FILE
    path.write_text(text)
    with pytest.raises(CellUsage) as error:
        shapes.find("g2.8")
    assert str(path) in str(error.value) and words in str(error.value)


def test_the_cells_own_options():
    found = options.parse(
        "--pull a,b --ranks=1,0 --gpus 2 --cpus 1 --oversubscribe --no-capture x --dry-run --no-protect", head()
    )
    assert found.launcher == ["--gpus", "2", "--cpus", "1", "--oversubscribe"]
    assert (found.pull, found.ranks, found.no_capture, found.dry_run, found.protect) == (
        ["a", "b"],
        [0, 1],
        ["x"],
        True,
        False,
    )


@pytest.mark.parametrize(
    "line, words",
    [
        ("--pull", "--pull: a value is missing"),
        ("--ranks a", "--ranks a: not numbers"),
        ("--json", "--json: a cell sets this itself"),
        ("train.py", "train.py: not an option"),
        ("--gpus '2", "No closing quotation"),
    ],
)
def test_wrong_options_are_named(line, words):
    with pytest.raises(CellUsage, match=words):
        options.parse(line, head())
