"""Pipelines as the libraries' own tutorials have them, with features that no other file here uses."""

import pathlib
import random
import tempfile

import numpy
import torch
from differential.pipeline import pipeline
from pipelines.samples import without_meta
from torch.utils.data import DataLoader, Dataset, default_collate


@pipeline(needs=("torchvision",), full=True, random=True)
def torchvision_cut_and_mix(workers):
    """CutMix and MixUp in collate_fn."""
    from torchvision.datasets import FakeData
    from torchvision.transforms import v2

    either = v2.RandomChoice([v2.CutMix(num_classes=10), v2.MixUp(num_classes=10)])
    steps = v2.Compose(
        [
            v2.PILToTensor(),
            v2.RandomResizedCrop((16, 16)),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )
    return DataLoader(
        FakeData(40, (3, 24, 24), 10, transform=steps),
        4,
        shuffle=True,
        num_workers=workers,
        collate_fn=lambda batch: either(*default_collate(batch)),
    )


@pipeline(needs=("torchvision",), full=True)
def torchvision_target_transform(workers):
    """Labels that a lambda makes others of."""
    from torchvision.datasets import FakeData
    from torchvision.transforms import Lambda, ToTensor

    other = Lambda(lambda label: torch.tensor((int(label) * 3 + 1) % 10))
    return DataLoader(FakeData(30, (1, 28, 28), 10, ToTensor(), other), 4, shuffle=True, num_workers=workers)


class Landmarks(Dataset):
    """Rows of a table of pandas, samples that are dictionaries, transforms that are classes of the script."""

    def __init__(self, transform):
        import pandas

        path = pathlib.Path(tempfile.gettempdir()) / "landmarks.csv"
        rows = {f"part_{number}_{axis}": range(number, number + 20) for number in range(4) for axis in "xy"}
        pandas.DataFrame({"image": [f"{row}.png" for row in range(20)], **rows}).to_csv(path, index=False)
        self.frame, self.transform = pandas.read_csv(path), transform

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, index):
        if torch.is_tensor(index):
            index = index.tolist()
        points = numpy.array([self.frame.iloc[index, 1:]], dtype=float).reshape(-1, 2)
        return self.transform(
            {"name": self.frame.iloc[index, 0], "image": numpy.full((24, 20, 3), index), "landmarks": points}
        )


class RandomCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, sample):
        top, left = numpy.random.randint(0, 24 - self.size), random.randint(0, 20 - self.size)
        image = sample["image"][top : top + self.size, left : left + self.size].transpose((2, 0, 1))
        return {
            **sample,
            "image": torch.from_numpy(image),
            "landmarks": torch.from_numpy(sample["landmarks"] - [left, top]),
        }


@pipeline(needs=("pandas",), full=True, random=True)
def pytorch_face_landmarks(workers):
    return DataLoader(Landmarks(RandomCrop(12)), 4, shuffle=True, num_workers=workers)


@pipeline(needs=("monai",), full=True, random=True)
def monai_cached_segmentation(workers):
    """The spleen tutorial: a cache, crops by label (several from one sample), MONAI's own loader."""
    from monai.data import CacheDataset, DataLoader as MonaiLoader, set_track_meta
    from monai.transforms import (
        Compose,
        EnsureChannelFirstd,
        RandCropByPosNegLabeld,
        RandRotate90d,
        ScaleIntensityRanged,
    )

    set_track_meta(False)  # it notes addresses of objects
    data = [
        {
            "image": numpy.full((16, 16, 8), number, numpy.float32) + numpy.arange(8),
            "label": numpy.eye(16)[:, :, None].repeat(8, 2),
        }
        for number in range(8)
    ]
    steps = Compose(
        [
            EnsureChannelFirstd(["image", "label"], channel_dim="no_channel"),
            ScaleIntensityRanged(["image"], a_min=0, a_max=16, b_min=0.0, b_max=1.0, clip=True),
            RandCropByPosNegLabeld(["image", "label"], "label", (4, 4, 4), pos=1, neg=1, num_samples=2),
            RandRotate90d(["image", "label"], prob=0.5),
        ]
    )
    return MonaiLoader(
        CacheDataset(data, steps, cache_rate=1.0, num_workers=0, progress=False),
        batch_size=2,
        shuffle=True,
        num_workers=workers,
        worker_init_fn=without_meta,
    )


@pipeline(needs=("torch-geometric",), full=True)
def torch_geometric_dynamic_batches(workers):
    """Batches by their number of nodes, with follow_batch."""
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader, DynamicBatchSampler

    graphs = [
        Data(x=torch.full((size, 3), float(size)), edge_index=torch.tensor([[0, size - 1], [size - 1, 0]]), y=size)
        for size in (2 + number * 5 % 11 for number in range(30))
    ]
    return GraphLoader(
        graphs,
        batch_sampler=DynamicBatchSampler(graphs, 20, mode="node", shuffle=True),
        follow_batch=["x"],
        num_workers=workers,
    )


@pipeline(needs=("datasets", "transformers", "tokenizers"), full=True, random=True)
def language_model_of_mixed_corpora(workers):
    """Two corpora interleaved by probability, a tokenizer, masks drawn in the collator."""
    import datasets as library
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    words = {
        word: number
        for number, word in enumerate(["[PAD]", "[MASK]", "[UNK]", *(f"w{number}" for number in range(50))])
    }
    plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", mask_token="[MASK]", unk_token="[UNK]"
    )
    corpora = [
        library.Dataset.from_dict(
            {"text": [" ".join(f"w{(row * 3 + place) % top}" for place in range(3 + row % 5)) for row in range(30)]}
        )
        for top in (20, 50)
    ]
    mixed = library.interleave_datasets(corpora, probabilities=[0.7, 0.3], seed=3)
    encoded = mixed.map(lambda row: tokenizer(row["text"]), remove_columns=["text"])
    return DataLoader(
        encoded, 4, shuffle=True, num_workers=workers, collate_fn=DataCollatorForLanguageModeling(tokenizer)
    )


@pipeline(needs=("pytorch-metric-learning", "torchvision"), full=True, resumes=False)
def metric_learning_by_class(workers):
    """So many of each class in a batch, as its tutorial's sampler draws them."""
    from pytorch_metric_learning.samplers import MPerClassSampler

    labels = [number % 5 for number in range(60)]
    pairs = torch.utils.data.TensorDataset(torch.arange(60.0), torch.tensor(labels))
    return DataLoader(
        pairs, 8, sampler=MPerClassSampler(labels, m=2, batch_size=8, length_before_new_iter=32), num_workers=workers
    )


@pipeline(needs=("litdata",), full=True, resumes=False, seconds=180.0)
def litdata_streaming(workers):
    """Samples in chunks that a dataset of its own streams."""
    from litdata import StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    folder = pathlib.Path(tempfile.mkdtemp()) / "chunks"
    writer = BinaryWriter(str(folder), chunk_size=8)
    for number in range(40):
        writer[number] = {"index": number, "values": numpy.arange(number, number + 5)}
    writer.done()
    writer.merge()
    return DataLoader(StreamingDataset(str(folder), shuffle=True, seed=3), 4, num_workers=workers)
