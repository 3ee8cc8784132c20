"""What a pipeline says of itself, and where pipelines are found."""

import dataclasses
import importlib
import importlib.metadata
import pathlib
import sys
import types
from typing import Any, Callable

FOLDER = pathlib.Path(__file__).parents[1] / "pipelines"


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A function that makes a loader with so many `num_workers`, and what is promised of it.

    num_workers   with which ones it is tried
    random        the dataset draws random numbers: the registered ways are compared with that of one data worker,
                  not with the plain loader
    any_order     the order is drawn without a seed: the samples of an epoch are compared, wherever they came
    refused       what the one line of the refusal matches
    raises        the plain loop ends with an exception, and the registered one with one of that type
    says          what its text matches
    before_epoch  called with the loader and the epoch's number, as a training script would call set_epoch
    each_step     called with the loader and the batch's number, after each batch
    seconds       how long a way may take, three times as long with libraries
    needs         distributions without which it is skipped
    full          tried with TAAS_FULL=1 only
    survives      False where two logical workers cannot be in one process, as when a data worker dies
    resumes       False where state_dict cannot know the place, or the loader has a state_dict of its own
    """

    name: str
    make: Callable[[int], Any]
    path: pathlib.Path
    num_workers: tuple[int, ...] = (0, 2)
    epochs: int = 2
    random: bool = False
    any_order: bool = False
    refused: str = ""
    raises: bool = False
    says: str = ""
    before_epoch: Callable[[Any, int], None] = lambda loader, epoch: None
    each_step: Callable[[Any, int], None] = lambda loader, number: None
    seconds: float = 60.0
    needs: tuple[str, ...] = ()
    full: bool = False
    survives: bool = True
    resumes: bool = True

    @property
    def is_script(self) -> bool:
        """Its file runs as a program's main module, as strangers' training scripts do."""
        return self.path.parent.name == "scripts"


def pipeline(**promises: Any) -> Callable[[Callable[[int], Any]], Callable[[int], Any]]:
    """Makes a pipeline of a function: `@pipeline(random=True)`."""

    def declare(make: Callable[[int], Any]) -> Callable[[int], Any]:
        path = pathlib.Path(make.__code__.co_filename)
        make.pipeline = Pipeline(f"{path.stem}.{make.__name__}", make, path, **promises)
        return make

    return declare


def of_samples(**promises: Any) -> Callable[[Callable[[int], Any]], Callable[[int], Any]]:
    """A pipeline that is about its samples: one epoch tells all."""
    return pipeline(**{"epochs": 1, **promises})


def of_module(module: types.ModuleType) -> list[Pipeline]:
    """In the order of the file."""
    found = [getattr(value, "pipeline", None) for value in vars(module).values()]
    return [each for each in found if isinstance(each, Pipeline) and each.path == pathlib.Path(module.__file__)]


def all_pipelines() -> list[Pipeline]:
    """Of all files below tests/python/pipelines."""
    paths = [path for path in sorted(FOLDER.glob("**/*.py")) if path.parent.name != "own_modules"]
    return [each for path in paths for each in of_module(_imported(path))]


def _imported(path: pathlib.Path) -> types.ModuleType:
    """What a script does to sys.path concerns its own process alone."""
    before = list(sys.path)
    try:
        return importlib.import_module(".".join(("pipelines", *path.relative_to(FOLDER).with_suffix("").parts)))
    finally:
        sys.path[:] = before


def missing(pipeline: Pipeline) -> list[str]:
    """What it needs and this Python does not have."""
    if not pipeline.needs:
        return []
    installed = {each.metadata["Name"].lower().replace("_", "-") for each in importlib.metadata.distributions()}
    return [name for name in pipeline.needs if name not in installed]
