"""The notebooks of docs/examples without a browser, with few digits, few epochs and two ranks."""

import pathlib

import digits
import nbformat
import pytest
from nbclient import NotebookClient

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
            cell.source = cell.source.replace("--gpus 8", "--gpus 2").replace("--units 20480000", "--units 512")
        NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(project)}}
        ).execute()
        return ["".join(output.get("text", "") for output in cell.get("outputs", ())) for cell in notebook.cells]

    execute.project = project
    return execute


def test_the_mnist_notebook_trains_logs_saves_and_says_the_total_time(executed):
    texts = executed("mnist", epochs=2, log_every=4)
    trained = next(text for text in texts if "Total time" in text)
    lines = [line.partition("\t")[0] for line in trained.splitlines() if line.startswith("Train")]
    assert lines[:4] == [f"Train Epoch: 1 [{256 * step}/1024 ({25 * step}%)]" for step in range(4)], (
        "samples of both ranks"
    )
    assert len(lines) == 8 and lines[-1].startswith("Train Epoch: 2 ")
    assert trained.count("Test set: Average loss") == 2
    assert (executed.project / "mnist_cnn.pt").exists()
    accuracy = [text.split("Accuracy: ")[1].split("/")[0] for text in (trained, texts[-1])]
    assert accuracy[0].isdigit() and int(texts[-1].split("Accuracy: ")[1].split("/")[0]) > 256 // 2, (
        "the saved model has learnt"
    )


def test_the_data_delivery_notebook_takes_its_batches_from_a_cpu_machine(executed):
    texts = executed("data_delivery", log_every=1)
    trained = next(text for text in texts if "Total time" in text)
    assert trained.count("Train Epoch: 1 ") == 4, "512 samples of two ranks in batches of 64"
    assert "data_loader: 256 samples were taken" in trained
