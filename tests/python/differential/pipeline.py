"""What a pipeline says of itself, and where pipelines are found."""

import dataclasses
import importlib
import importlib.metadata
import pathlib
import sys
from typing import Any, Callable

FOLDER = pathlib.Path(__file__).parents[1] / "pipelines"


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A function that makes a loader with so many `num_workers`, and what is promised of it.

    num_workers   with which ones it is tried
    random        the dataset draws random numbers: the registered ways are compared with that of one data worker,
                  not with the plain loader
    refused       what the one line of the refusal matches
    raises        the plain loop ends with an exception, and the registered one with one of that type
    before_epoch  called with the loader and the epoch's number, as a training script would call set_epoch
    each_step     called with the loader and the batch's number, after each batch
    needs         the distribution that it is about: tried with TAAS_FULL=1 only
    resumes       False where state_dict cannot know the place, or the loader has a state_dict of its own
    """

    name: str
    make: Callable[[int], Any]
    path: pathlib.Path
    num_workers: tuple[int, ...] = (0, 2)
    epochs: int = 2
    random: bool = False
    refused: str = ""
    raises: bool = False
    before_epoch: Callable[[Any, int], None] = lambda loader, epoch: None
    each_step: Callable[[Any, int], None] = lambda loader, number: None
    needs: str = ""
    resumes: bool = True

    @property
    def is_script(self):
        """Its file runs as a program's main module, as strangers' training scripts do."""
        return self.path.parent.name == "scripts"

    @property
    def is_missing(self):
        try:
            return self.needs and not importlib.metadata.distribution(self.needs)
        except importlib.metadata.PackageNotFoundError:
            return True


def pipeline(**promises):
    """Makes a pipeline of a function: `@pipeline(random=True)`."""

    def declare(make):
        path = pathlib.Path(make.__code__.co_filename)
        make.pipeline = Pipeline(f"{path.stem}.{make.__name__}", make, path, **promises)
        return make

    return declare


def all_pipelines():
    """Of all files below tests/python/pipelines. What a script does to sys.path concerns its own process alone."""
    found, before = [], list(sys.path)
    for path in sorted(FOLDER.glob("**/*.py")):
        if path.parent.name != "own_modules":
            module = importlib.import_module(".".join(("pipelines", *path.relative_to(FOLDER).with_suffix("").parts)))
            declared = [getattr(value, "pipeline", None) for value in vars(module).values()]
            found += [each for each in declared if isinstance(each, Pipeline) and each.path == path]
            sys.path[:] = before
    return found
