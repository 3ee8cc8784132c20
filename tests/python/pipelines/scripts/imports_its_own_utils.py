"""A script with modules beside it whose names others have, too."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).with_name("own_modules")))

from differential.pipeline import pipeline
from torch.utils.data import DataLoader, Dataset


class Imports(Dataset):
    """Imports when a sample is made, as tokenizers do."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        import pooch_of_this_script
        import tabnanny

        return pooch_of_this_script.WHO, tabnanny.__name__, getattr(tabnanny, "WHO", "the standard library's")


@pipeline()
def modules_beside_the_script(workers):
    return DataLoader(Imports(), 4, num_workers=workers, collate_fn=list)
