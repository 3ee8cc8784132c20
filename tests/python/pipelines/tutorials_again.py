"""Pipelines after the libraries' own tutorials, by names and features that no other file here uses: a second eight."""

import math
import pathlib
import random
import tempfile

import numpy
import torch
from differential.pipeline import pipeline
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler, get_worker_info


def place(name):
    return str(pathlib.Path(tempfile.gettempdir(), name))


@pipeline(needs=("torchvision",), full=True, random=True)
def torchvision_detection(workers):
    """The fine-tuning tutorial: boxes and masks as tv_tensors, images of several sizes, a collate_fn of tuples."""
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    class Pedestrians(Dataset):
        def __init__(self):
            self.transforms = v2.Compose(
                [
                    v2.RandomHorizontalFlip(0.5),
                    v2.RandomIoUCrop(),
                    v2.SanitizeBoundingBoxes(),
                    v2.ToDtype(torch.float32, scale=True),
                    v2.ToPureTensor(),
                ]
            )

        def __len__(self):
            return 24

        def __getitem__(self, index):
            size = (20 + index % 5, 24 + index % 3)
            image = tv_tensors.Image(torch.full((3, *size), index, dtype=torch.uint8))
            boxes = tv_tensors.BoundingBoxes([[1, 2, 12, 13], [3, 3, 18, 15]], format="XYXY", canvas_size=size)
            masks = tv_tensors.Mask(torch.ones(2, *size, dtype=torch.uint8))
            return self.transforms(
                image, {"boxes": boxes, "masks": masks, "labels": torch.tensor([1, 2]), "image_id": index}
            )

    return DataLoader(Pedestrians(), 4, shuffle=True, num_workers=workers, collate_fn=lambda batch: tuple(zip(*batch)))


@pipeline(needs=("monai",), full=True, resumes=False)  # each iter() of the buffer counts its seed up
def monai_grid_patches(workers):
    """The patch tutorial: an iterable over patches of volumes, with their places, in an order shuffled in a buffer."""
    from monai.data import GridPatchDataset, PatchIterd, ShuffleBuffer
    from monai.transforms import ScaleIntensityd

    volumes = [
        {"image": numpy.arange(1 * 8 * 8 * 4, dtype=numpy.float32).reshape(1, 8, 8, 4) + number} for number in range(6)
    ]
    patches = GridPatchDataset(
        volumes,
        PatchIterd(["image"], patch_size=(4, 4, None), start_pos=(0, 0)),
        with_coordinates=True,
        transform=ScaleIntensityd("image"),
    )
    return DataLoader(ShuffleBuffer(patches, buffer_size=5, seed=3), 3, num_workers=workers)


@pipeline(needs=("torch-geometric",), full=True)
def torch_geometric_heterogeneous(workers):
    """Graphs of several kinds of nodes and edges, exclude_keys and a transform at each access."""
    from torch_geometric.data import HeteroData
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.transforms import Compose, NormalizeFeatures, ToUndirected

    def graph(number):
        data = HeteroData()
        data["paper"].x = torch.arange(6.0).view(3, 2) + number
        data["author"].x = torch.ones(2, 2) * number
        data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [1, number % 3]])
        data.unused = torch.zeros(100)
        return data

    steps = Compose([ToUndirected(), NormalizeFeatures()])
    return GraphLoader(
        [steps(graph(number)) for number in range(24)], 5, shuffle=True, exclude_keys=["unused"], num_workers=workers
    )


@pipeline(needs=("datasets",), full=True)
def huggingface_interleaved(workers):
    """Streams of two corpora, mixed by probabilities, batched and formatted as numpy."""
    import datasets as made

    corpora = [
        made.Dataset.from_dict(
            {"source": [name] * 20, "value": [numpy.full(3, row).tolist() for row in range(20)]}
        ).to_iterable_dataset(num_shards=2)
        for name in ("a", "b")
    ]
    mixed = made.interleave_datasets(corpora, probabilities=[0.7, 0.3], seed=5, stopping_strategy="all_exhausted")
    return DataLoader(mixed.with_format("numpy"), 4, num_workers=workers, collate_fn=list)


@pipeline(needs=("webdataset",), full=True, resumes=False)
def webdataset_fluid(workers):
    """A fluid pipeline: tars, decoded, renamed, tuples, batched in the workers, with an epoch that is set."""
    import io
    import tarfile

    import webdataset

    for shard in range(4):
        with tarfile.open(place(f"fluid-{shard}.tar"), "w") as tar:
            for row in range(6):
                for suffix, data in (("json", f'{{"row": {row}}}'.encode()), ("cls", str(shard).encode())):
                    member = tarfile.TarInfo(f"{shard}-{row}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    names = [place(f"fluid-{shard}.tar") for shard in range(4)]
    made = (
        webdataset.WebDataset(names, shardshuffle=False)
        .decode()
        .rename(info="json", label="cls")
        .to_tuple("info", "label")
        .map_tuple(lambda info: info["row"] * 2, lambda label: label + 1)
        .batched(4, partial=True)
    )
    return DataLoader(made, batch_size=None, num_workers=workers)


class Pages(IterableDataset):
    """The iterable tutorial's own example, with a file that is opened in iter() and closed at its end."""

    def __init__(self, path, start, end):
        self.path, self.start, self.end = path, start, end

    def __iter__(self):
        info = get_worker_info()
        share = math.ceil((self.end - self.start) / (info.num_workers if info else 1))
        first = self.start + (info.id if info else 0) * share
        with open(self.path) as file:
            for number, line in enumerate(file):
                if first <= number < min(first + share, self.end):
                    yield {"line": line.strip(), "words": len(line.split()), "noise": random.random()}


@pipeline(random=True, full=True)
def pages_of_a_file(workers):
    pathlib.Path(place("pages.txt")).write_text(
        "".join(f"line {row} " + "word " * (row % 4) + "\n" for row in range(40))
    )
    return DataLoader(Pages(place("pages.txt"), 3, 37), 4, num_workers=workers)


@pipeline(needs=("scikit-learn",), full=True)
def sklearn_weights(workers):
    """Imbalanced classes: folds of scikit-learn, its scaler fitted before, a weighted sampler with a generator."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    features = numpy.arange(120.0).reshape(40, 3) % 7
    classes = numpy.arange(40) % 5 // 3
    train, _ = next(iter(StratifiedKFold(4, shuffle=True, random_state=1).split(features, classes)))
    scaler = StandardScaler().fit(features[train])

    class Fold(Dataset):
        def __len__(self):
            return len(train)

        def __getitem__(self, index):
            return scaler.transform(features[train[index : index + 1]])[0].astype(numpy.float32), int(
                classes[train[index]]
            )

    weights = 1.0 / numpy.bincount(classes[train])[classes[train]]
    sampler = WeightedRandomSampler(weights, 36, generator=torch.Generator().manual_seed(7))
    return DataLoader(Fold(), 6, sampler=sampler, num_workers=workers)


@pipeline(needs=("tokenizers", "transformers"), full=True)
def question_answering_windows(workers):
    """The question answering tutorial: a fast tokenizer with overflowing windows and offsets, padded by a collator."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast

    words = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *(f"w{number}" for number in range(30))])}
    plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]")
    texts = [" ".join(f"w{(row * 7 + word) % 40}" for word in range(6 + row % 9)) for row in range(24)]
    windows = tokenizer(texts, truncation=True, max_length=8, stride=3, return_overflowing_tokens=True)
    rows = [
        {
            "input_ids": windows["input_ids"][number],
            "attention_mask": windows["attention_mask"][number],
            "example": windows["overflow_to_sample_mapping"][number],
        }
        for number in range(len(windows["input_ids"]))
    ]
    return DataLoader(rows, 5, shuffle=True, num_workers=workers, collate_fn=DataCollatorWithPadding(tokenizer))
