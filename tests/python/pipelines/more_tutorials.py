"""Pipelines after the libraries' tutorials, by names and features that no other file uses: a third eight and one."""

import pathlib
import tempfile

import numpy
import torch
from differential.pipeline import pipeline
from pipelines.samples import without_meta
from torch.utils.data import DataLoader, Dataset


def place(name):
    made = pathlib.Path(tempfile.gettempdir(), name)
    made.mkdir(parents=True, exist_ok=True)
    return made


@pipeline(needs=("torchvision",), full=True, random=True)
def torchvision_wrapped_segmentation(workers):
    """VOC as it lies on a disk, wrapped for the second transforms, with other colours and an erased part."""
    from PIL import Image
    from torchvision import datasets
    from torchvision.transforms import v2

    year = place("voc/VOCdevkit/VOC2012")
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (year / folder).mkdir(parents=True, exist_ok=True)
    for number in range(12):
        Image.new("RGB", (24, 20), (number, 100, 50)).save(year / "JPEGImages" / f"{number}.jpg")
        Image.new("P", (24, 20), number % 3).save(year / "SegmentationClass" / f"{number}.png")
    (year / "ImageSets/Segmentation/train.txt").write_text("\n".join(map(str, range(12))) + "\n")
    steps = v2.Compose(
        [
            v2.RandomPhotometricDistort(),
            v2.RandomResizedCrop((16, 16), antialias=True),
            v2.ToImage(),
            v2.RandomErasing(1.0),
        ]
    )
    voc = datasets.wrap_dataset_for_transforms_v2(
        datasets.VOCSegmentation(place("voc"), image_set="train", transforms=steps)
    )
    return DataLoader(voc, 3, shuffle=True, num_workers=workers)


@pipeline(needs=("tensordict",), full=True, refused="cannot be pickled")  # memory maps of its own
def tensorclass_of_a_memory_map(workers):
    """The tutorial of tensorclasses: filled once, mapped from a file, indexed by lists of a batch."""
    from tensordict import MemoryMappedTensor, tensorclass

    @tensorclass
    class Images:
        images: torch.Tensor
        targets: torch.Tensor

    images, targets = (
        MemoryMappedTensor.empty((24, 3, 4), dtype=torch.uint8),
        MemoryMappedTensor.empty((24,), dtype=torch.int64),
    )
    data = Images(images=images, targets=targets, batch_size=[24]).memmap_()
    for number in range(24):
        data[number] = Images(
            images=torch.full((3, 4), number, dtype=torch.uint8), targets=torch.tensor(number), batch_size=[]
        )
    return DataLoader(
        data, 5, shuffle=True, num_workers=workers, collate_fn=lambda batch: (batch.images.float() / 255, batch.targets)
    )


@pipeline(needs=("lhotse",), full=True, resumes=False)
def lhotse_sampled_in_the_workers(workers):
    """An iterable wrapper around the sampler, which each worker shards by the seed that its init function gives it."""
    from lhotse import CutSet
    from lhotse.dataset import DynamicCutSampler
    from lhotse.dataset.dataloading import make_worker_init_fn
    from lhotse.dataset.iterable_dataset import IterableDatasetWrapper
    from lhotse.testing.dummies import DummyManifest

    class Names(torch.utils.data.Dataset):
        def __getitem__(self, cuts):
            return {"names": [cut.id for cut in cuts], "lengths": torch.tensor([cut.num_samples for cut in cuts])}

    sampler = DynamicCutSampler(
        DummyManifest(CutSet, begin_id=0, end_id=30), max_cuts=4, shuffle=True, drop_last=True, seed=5
    )
    return DataLoader(
        IterableDatasetWrapper(Names(), sampler, auto_increment_epoch=False),
        batch_size=None,
        num_workers=workers,
        worker_init_fn=make_worker_init_fn(rank=0, world_size=1, seed=5) if workers else None,
    )


@pipeline(needs=("torch-geometric",), full=True)
def torch_geometric_random_nodes(workers):
    """A loader that is its own collate function, and deals the nodes of one graph at random."""
    from torch_geometric.data import Data
    from torch_geometric.loader import RandomNodeLoader

    edges = torch.stack([torch.arange(40), (torch.arange(40) * 7 + 3) % 40])
    graph = Data(x=torch.arange(80.0).view(40, 2), edge_index=edges, y=torch.arange(40))
    return RandomNodeLoader(graph, num_parts=8, shuffle=True, num_workers=workers)


@pipeline(needs=("timm",), full=True, random=True)
def timm_repeated_and_mixed(workers):
    """Each sample three times in an epoch (RepeatAugSampler), mixed while it is collated."""
    from timm.data.distributed_sampler import RepeatAugSampler
    from timm.data.mixup import FastCollateMixup

    class Pictures(Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            return numpy.full((3, 8, 8), index, numpy.uint8), index % 4

    mixed = FastCollateMixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=4, mode="batch")
    sampler = RepeatAugSampler(Pictures(), num_replicas=2, rank=1, shuffle=True, selected_round=0)
    return DataLoader(Pictures(), 4, sampler=sampler, num_workers=workers, collate_fn=mixed, drop_last=True)


@pipeline(needs=("albumentations",), full=True, random=True)
def albumentations_with_boxes(workers):
    """Boxes that move with the image, parameters as they were drawn, a seed of its own."""
    import albumentations

    steps = albumentations.Compose(
        [
            albumentations.HorizontalFlip(p=0.5),
            albumentations.RandomCrop(12, 12),
            albumentations.OneOf([albumentations.Blur(), albumentations.GaussNoise()], p=0.7),
        ],
        bbox_params=albumentations.BboxParams("pascal_voc", label_fields=["labels"]),
        seed=137,
    )

    class Boxed(Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, index):
            made = steps(image=numpy.full((16, 16, 3), index, numpy.uint8), bboxes=[[1, 1, 12, 13]], labels=[index])
            return made["image"], made["bboxes"], made["labels"]

    return DataLoader(Boxed(), 4, num_workers=workers, collate_fn=list)


def documents_of(shards):
    for shard in shards:
        for row in range(8):
            yield {"shard": shard, "ids": list(range(row % 3 + 2))}


def padded(rows):
    longest = max(map(len, rows["ids"]))
    return {
        "input_ids": [ids + [0] * (longest - len(ids)) for ids in rows["ids"]],
        "label": [len(ids) for ids in rows["ids"]],
    }


@pipeline(
    needs=("datasets", "transformers"), full=True, before_epoch=lambda loader, epoch: loader.dataset.set_epoch(epoch)
)
def huggingface_from_a_generator(workers):
    """A stream of a generator's shards, shuffled, padded by batches, collated by transformers' own function."""
    from datasets import IterableDataset
    from transformers import default_data_collator

    stream = IterableDataset.from_generator(documents_of, gen_kwargs={"shards": ["a", "b", "c"]})
    stream = stream.shuffle(seed=7, buffer_size=6).map(
        padded, batched=True, batch_size=4, remove_columns=["shard", "ids"]
    )
    return DataLoader(stream, 4, num_workers=workers, collate_fn=default_data_collator, drop_last=True)


@pipeline(needs=("monai",), full=True, seconds=180.0)
def monai_kept_on_disk(workers):
    """What has been transformed once is kept in files; images of several sizes are padded."""
    from monai.data import PersistentDataset, list_data_collate, set_track_meta
    from monai.transforms import Compose, EnsureTyped, NormalizeIntensityd, SpatialPadd

    set_track_meta(False)  # which numbers objects by their addresses
    plane = numpy.arange(36, dtype=numpy.float32).reshape(1, 6, 6)
    volumes = [{"image": plane[:, : 4 + number % 3] + number, "name": f"v{number}"} for number in range(12)]
    steps = Compose([EnsureTyped("image"), NormalizeIntensityd("image"), SpatialPadd("image", (6, 6))])
    kept = PersistentDataset(volumes, steps, cache_dir=place("persistent"))
    return DataLoader(kept, 3, num_workers=workers, collate_fn=list_data_collate, worker_init_fn=without_meta)


@pipeline(needs=("monai",), full=True, seconds=180.0, resumes=False)
def monai_loader_with_a_thread(workers):
    """A subclass of the loader that reads ahead in a thread: its state is that of what was read."""
    from monai.data import Dataset as MonaiDataset, ThreadDataLoader, set_track_meta
    from monai.transforms import Compose, EnsureType, ScaleIntensityRange

    steps = Compose([EnsureType(), ScaleIntensityRange(0, 20, 0, 1)])
    set_track_meta(False)  # which numbers objects by their addresses
    made = MonaiDataset([numpy.full((2, 3), number, numpy.float32) for number in range(20)], steps)
    return ThreadDataLoader(made, batch_size=4, num_workers=workers, buffer_size=2, worker_init_fn=without_meta)
