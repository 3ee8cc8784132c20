"""The notebooks of docs/examples without a browser, with few digits, few epochs and two ranks."""

import pathlib
import re

import digits
import nbformat
import pytest
from nbclient import NotebookClient
from waiting import DEADLINE_SECONDS

pytest.importorskip("torchvision")

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """Runs a notebook whose parameters are replaced as papermill does it; returns the text of each of its cells."""
    project = tmp_path / "project"
    project.mkdir()
    digits.write(tmp_path / "data", 1024, 256)
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))

    def execute(name, **parameters):
        notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
        for cell in notebook.cells:
            if "parameters" in cell.metadata.get("tags", ()):
                cell.source += "\n" + "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
            cell.source = cell.source.replace("--gpus 8", "--gpus 2").replace("--units 4000000", "--units 512")
        NotebookClient(
            notebook, timeout=DEADLINE_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(project)}}
        ).execute()
        return ["".join(output.get("text", "") for output in cell.get("outputs", ())) for cell in notebook.cells]

    execute.project = project
    return execute


def test_the_mnist_notebook_trains_logs_saves_and_says_how_long_it_took(executed):
    texts = executed("mnist", epochs=6, log_every=4)
    trained = next(text for text in texts if "6 epochs in " in text)
    said = re.findall(r"^epoch (\d), (\d+) of 1024 digits: loss \d+\.\d\d$", trained, re.MULTILINE)
    both_ranks = [str(256 * step) for step in range(1, 5)]
    assert said == [(epoch, seen) for epoch in "123456" for seen in both_ranks], trained
    after_epochs, (saved,) = (
        re.findall(r"^(\d+) of 256 digits right$", text, re.MULTILINE) for text in (trained, texts[-1])
    )
    assert len(after_epochs) == 6 and saved == after_epochs[-1] and int(saved) > 256 // 2, f"{after_epochs}, {saved}"
    assert re.search(r"^6 epochs in \d+ s$", trained, re.MULTILINE), trained
    assert (executed.project / "digits.pt").exists()


def test_the_data_delivery_notebook_takes_its_batches_from_cpu_machines(executed):
    texts = executed("data_delivery", log_every=1)
    trained = next(text for text in texts if "one epoch in " in text)
    assert trained.count(" digits: loss ") == 4, "512 samples of two ranks in batches of 64"
    assert "data_loader: 256 samples were taken" in trained
