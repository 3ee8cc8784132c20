"""Of training: torchvision, timm, Lightning, accelerate, torch_geometric, albumentations, kornia, MONAI, lhotse."""

import numpy
import torch
from differential.pipeline import pipeline
from own_datasets import Numbers
from pipelines.everyday import Made
from pipelines.storage import place
from torch.utils.data import DataLoader


def images():
    """A folder of classes, as ImageFolder reads it."""
    from PIL import Image

    root = place("images")
    for label in range(2):
        (root / f"class {label}").mkdir(parents=True)
        for number in range(10):
            pixels = numpy.random.default_rng(number).integers(0, 255, (20, 24, 3), dtype=numpy.uint8) + label
            Image.fromarray(pixels).save(root / f"class {label}" / f"{number}.png")
    return str(root)


@pipeline(needs="pillow", epochs=1)
def images_of_pil(workers):
    from PIL import Image

    made = Made(lambda index: Image.new("RGB", (4, 3), (index, 20, 30)))
    return DataLoader(made, 4, num_workers=workers, collate_fn=list)


@pipeline(needs="torchvision")
def torchvision_image_folder(workers):
    from torchvision import datasets, transforms

    steps = transforms.Compose([transforms.Resize(16), transforms.CenterCrop(12), transforms.ToTensor()])
    return DataLoader(datasets.ImageFolder(images(), steps), 4, shuffle=True, num_workers=workers)


@pipeline(needs="torchvision", random=True)
def torchvision_augmentations(workers):
    from torchvision import datasets, transforms

    steps = transforms.Compose(
        [
            transforms.RandomResizedCrop(12),
            transforms.RandomHorizontalFlip(),
            transforms.RandAugment(),
            transforms.ToTensor(),
            transforms.RandomErasing(),
        ]
    )
    return DataLoader(datasets.ImageFolder(images(), steps), 4, shuffle=True, num_workers=workers)


@pipeline(needs="torchvision")
def torchvision_tv_tensors(workers):
    from torchvision import tv_tensors

    def made(index):
        box = tv_tensors.BoundingBoxes([[0, 0, index, 3]], format="XYXY", canvas_size=(9, 9))
        return tv_tensors.Image(torch.full((3, 4, 4), index)), {"boxes": box, "mask": tv_tensors.Mask(torch.ones(4, 4))}

    return DataLoader(Made(made), 4, num_workers=workers, collate_fn=list)


@pipeline(needs="timm", resumes=False)
def timm_multi_epochs_loader(workers):
    from timm.data.loader import MultiEpochsDataLoader

    return MultiEpochsDataLoader(Numbers(47), batch_size=8, num_workers=workers)


@pipeline(needs="timm")
def timm_collate_and_dataset(workers):
    from timm.data import create_dataset, create_transform
    from timm.data.loader import fast_collate

    dataset = create_dataset("", images(), split="")
    dataset.transform = create_transform(16, is_training=False, use_prefetcher=True)
    return DataLoader(dataset, 4, shuffle=True, num_workers=workers, collate_fn=fast_collate)


@pipeline(needs="lightning")
def lightning_data_module(workers):
    import lightning

    class Module(lightning.LightningDataModule):
        def setup(self, stage):
            self.train, self.validation = torch.utils.data.random_split(Numbers(47), [40, 7])

        def train_dataloader(self):
            return DataLoader(self.train, 4, shuffle=True, num_workers=workers)

    module = Module()
    module.setup("fit")
    return module.train_dataloader()


@pipeline(needs="accelerate", refused="is not a torch.utils.data.DataLoader")  # it only says so
def accelerate_prepared(workers):
    import accelerate

    return accelerate.Accelerator(cpu=True).prepare(DataLoader(Numbers(47), 4, shuffle=True, num_workers=workers))


@pipeline(needs="accelerate")
def accelerate_skips_the_first_batches(workers):
    import accelerate

    return accelerate.skip_first_batches(DataLoader(Numbers(47), 4, shuffle=True, num_workers=workers), 2)


@pipeline(needs="torch-geometric")
def torch_geometric_graphs(workers):
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader

    def graph(index):
        return Data(
            x=torch.full((index + 2, 3), float(index)),
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            y=torch.tensor([index]),
        )

    return GraphLoader([graph(index) for index in range(20)], batch_size=4, shuffle=True, num_workers=workers)


@pipeline(needs="albumentations", random=True)
def albumentations_of_images(workers):
    import albumentations

    steps = albumentations.Compose(
        [albumentations.RandomCrop(8, 8), albumentations.HorizontalFlip(), albumentations.RandomGamma()]
    )
    pixels = numpy.random.default_rng(1).integers(0, 255, (20, 20, 3), dtype=numpy.uint8)
    return DataLoader(Made(lambda index: steps(image=pixels + index)["image"]), 4, num_workers=workers)


@pipeline(needs="kornia", random=True)
def kornia_augmentations(workers):
    import kornia.augmentation

    steps = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomHorizontalFlip(), kornia.augmentation.RandomRotation(20.0)
    )
    return DataLoader(Made(lambda index: steps(torch.arange(48.0).view(1, 3, 4, 4) + index)), 4, num_workers=workers)


@pipeline(needs="monai")
def monai_dictionaries(workers):
    from monai.data import CacheDataset
    from monai.data import DataLoader as MonaiLoader
    from monai.transforms import Compose, EnsureChannelFirstd, ScaleIntensityd

    rows = [{"image": numpy.arange(16.0).reshape(4, 4) + row, "label": row} for row in range(12)]
    steps = Compose([EnsureChannelFirstd("image", channel_dim="no_channel"), ScaleIntensityd("image")])
    return MonaiLoader(CacheDataset(rows, steps, progress=False), batch_size=4, shuffle=True, num_workers=workers)


@pipeline(needs="lhotse", resumes=False)  # the sampler's state is that of its last epoch's end: refused
def lhotse_buckets(workers):
    from lhotse import CutSet
    from lhotse.dataset import DynamicBucketingSampler
    from lhotse.testing.dummies import DummyManifest

    class Cuts(torch.utils.data.Dataset):
        def __getitem__(self, cuts):
            return [(cut.id, cut.duration) for cut in cuts]

    cuts = DummyManifest(CutSet, begin_id=0, end_id=40)
    sampler = DynamicBucketingSampler(cuts, max_duration=5.0, num_buckets=3, shuffle=True, seed=3)
    return DataLoader(Cuts(), sampler=sampler, batch_size=None, num_workers=workers)


@pipeline(needs="tensordict")
def tensordict_batches(workers):
    from tensordict import TensorDict

    made = TensorDict({"x": torch.arange(60.0).view(20, 3), "y": {"z": torch.arange(20)}}, batch_size=[20])
    return DataLoader(made, 4, shuffle=True, num_workers=workers, collate_fn=lambda batch: batch)


@pipeline(needs="transformers")
def transformers_collator(workers):
    from transformers import DefaultDataCollator

    return DataLoader(
        Made(lambda index: {"input_ids": [index] * 4, "label": index % 2}),
        4,
        num_workers=workers,
        collate_fn=DefaultDataCollator(),
    )
