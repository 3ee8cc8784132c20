"""Pipelines after the libraries' tutorials, by names and features no other file uses: a fifth nine, on tasks."""

import itertools
import pathlib
import random
import tempfile

import numpy
import torch
from differential.pipeline import pipeline
from pipelines.samples import without_meta
from torch.utils.data import DataLoader, Dataset, IterableDataset, StackDataset, Subset, get_worker_info


def place(name):
    made = pathlib.Path(tempfile.gettempdir(), name)
    made.mkdir(parents=True, exist_ok=True)
    return made


@pipeline(needs=("torch-geometric",), full=True, random=True)
def torch_geometric_events(workers):
    """Events in time, with negative targets that are drawn, by a loader that is its own collate_fn."""
    from torch_geometric.data import TemporalData
    from torch_geometric.loader import TemporalDataLoader

    rows = torch.arange(50)
    events = TemporalData(src=rows % 7, dst=10 + rows * 3 % 5, t=rows * 2, msg=torch.sin(rows[:, None] * torch.ones(3)))
    return TemporalDataLoader(events, batch_size=8, neg_sampling_ratio=1.0, num_workers=workers)


@pipeline(needs=("tokenizers", "transformers"), full=True, random=True)
def permuted_language_model(workers):
    """XLNet's: spans of text are drawn, and an order in which they are told."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import DataCollatorForPermutationLanguageModeling, PreTrainedTokenizerFast

    words = {
        word: number
        for number, word in enumerate(["<pad>", "<mask>", "<cls>", "<sep>", *(f"w{number}" for number in range(30))])
    }
    plain = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", mask_token="<mask>", cls_token="<cls>", sep_token="<sep>"
    )
    rows = [
        {"input_ids": tokenizer(" ".join(f"w{(row + word) % 30}" for word in range(12)))["input_ids"]}
        for row in range(30)
    ]
    return DataLoader(
        rows, 4, shuffle=True, num_workers=workers, collate_fn=DataCollatorForPermutationLanguageModeling(tokenizer)
    )


@pipeline(needs=("monai",), full=True, random=True)
def monai_images_and_masks(workers):
    """Images and masks as two lists, whose transforms draw in step."""
    from monai.data import ArrayDataset, set_track_meta
    from monai.transforms import Compose, RandAdjustContrast, RandFlip, RandGaussianNoise, RandZoom

    set_track_meta(False)  # which numbers objects by their addresses
    images = [numpy.arange(64, dtype=numpy.float32).reshape(1, 8, 8) + number for number in range(20)]
    masks = [(image % 3 > 1).astype(numpy.float32) for image in images]
    pairs = ArrayDataset(
        images,
        Compose([RandFlip(0.5), RandZoom(0.5), RandAdjustContrast(0.5), RandGaussianNoise(0.5)]),
        masks,
        Compose([RandFlip(0.5), RandZoom(0.5)]),
        labels=list(range(20)),
    )
    pairs.set_random_state(seed=7)
    return DataLoader(pairs, 4, shuffle=True, num_workers=workers, worker_init_fn=without_meta)


@pipeline(needs=("torchvision", "soundfile"), full=True, random=True)
def sounds_in_folders(workers):
    """Spoken words, a folder for each; a part of each is drawn, shifted in time, made a spectrogram and padded."""
    import soundfile
    from torch.nn.utils.rnn import pad_sequence
    from torchvision.datasets import DatasetFolder

    for word, pitch in (("yes", 3), ("no", 5)):
        for number in range(10):
            waves = numpy.sin(numpy.arange(1200 + 100 * number) / pitch) / 2
            soundfile.write(place(f"sounds/{word}") / f"{number}.flac", waves, 8000)

    def read(path):
        with soundfile.SoundFile(path) as file:
            file.seek(random.randrange(file.frames - 1000))
            return torch.from_numpy(file.read(1000, dtype="float32"))

    def spectrogram(waves):
        shifted = torch.roll(waves, int(torch.randint(100, ()))) * torch.empty(()).uniform_(0.5, 1.0)
        return (
            torch.stft(shifted[: 600 + 50 * random.randrange(8)], 64, window=torch.hann_window(64), return_complex=True)
            .abs()
            .T
        )

    sounds = DatasetFolder(str(place("sounds")), read, extensions=(".flac",), transform=spectrogram)
    return DataLoader(
        sounds,
        4,
        shuffle=True,
        num_workers=workers,
        collate_fn=lambda rows: (
            pad_sequence([sound for sound, _ in rows], True),
            torch.tensor([word for _, word in rows]),
        ),
    )


class Chunks(IterableDataset):
    """A table that is read a few rows at a time; each worker takes its share of the pieces."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        import pandas

        info = get_worker_info()
        with pandas.read_csv(self.path, chunksize=7, dtype={"code": "category"}, parse_dates=["day"]) as reader:
            for piece in itertools.islice(reader, info.id if info else 0, None, info.num_workers if info else 1):
                shown = pandas.get_dummies(piece, columns=["code"], dtype="float32").assign(
                    day=piece["day"].dt.dayofyear
                )
                yield {name: torch.from_numpy(column.to_numpy(copy=True)) for name, column in shown.items()}


@pipeline(needs=("pandas",), full=True)
def pandas_in_chunks(workers):
    import pandas

    path = place("tables") / "sales.csv"
    pandas.DataFrame(
        {"day": pandas.date_range("2024-01-01", periods=60), "code": list("abc") * 20, "sold": numpy.arange(60) / 3}
    ).to_csv(path, index=False)
    return DataLoader(Chunks(path), batch_size=None, num_workers=workers)


@pipeline(needs=("tifffile", "scikit-learn"), full=True)
def cells_in_stacks(workers):
    """Stacks of a microscope, mapped from their files, beside their masks; a fold whose donors are in no other one."""
    import tifffile
    from sklearn.model_selection import GroupKFold

    class Stack(Dataset):
        def __init__(self, name, dtype):
            path = place("stacks") / f"{name}.tif"
            tifffile.imwrite(
                path, (numpy.arange(40 * 6 * 5) % 251).reshape(40, 6, 5).astype(dtype), photometric="minisblack"
            )
            self.pages = tifffile.memmap(path, mode="r")

        def __len__(self):
            return len(self.pages)

        def __getitem__(self, index):
            return torch.from_numpy(self.pages[index].astype("float32"))

    both = StackDataset(image=Stack("cells", "uint16"), mask=Stack("masks", "uint8"))
    train, _ = next(GroupKFold(4).split(numpy.zeros(40), groups=numpy.arange(40) // 5))
    return DataLoader(Subset(both, train), 4, shuffle=True, num_workers=workers)


@pipeline(needs=("datasets", "pyarrow"), full=True)
def huggingface_parquet_streamed(workers):
    """Parquet files as a stream: rows skipped and taken, columns renamed and cast, batched by the stream itself."""
    import pyarrow
    import pyarrow.parquet
    from datasets import load_dataset

    for part in range(4):
        rows = {
            "number": range(part * 12, part * 12 + 12),
            "text": [f"row {row}" for row in range(12)],
            "vector": [[row / 2] * 3 for row in range(12)],
        }
        pyarrow.parquet.write_table(pyarrow.table(rows), place("parquet") / f"part-{part}.parquet", row_group_size=5)
    files = [str(place("parquet") / f"part-{part}.parquet") for part in range(4)]
    stream = load_dataset(
        "parquet", data_files={"train": files}, split="train", streaming=True, cache_dir=str(place("cache"))
    )
    stream = stream.skip(3).take(40).rename_column("number", "id").remove_columns("text").with_format("torch").batch(5)
    return DataLoader(stream, batch_size=None, num_workers=workers)


@pipeline(needs=("accelerate",), full=True)
def accelerate_skipped_batches(workers):
    """A checkpoint's tutorial: the rest of an epoch that was left in its middle."""
    from accelerate import skip_first_batches

    rows = torch.utils.data.TensorDataset(torch.arange(50.0), torch.arange(50) % 3)
    return skip_first_batches(DataLoader(rows, 4, shuffle=True, num_workers=workers), 3)


@pipeline(needs=("timm", "pillow"), full=True, random=True)
def timm_views_of_an_image(workers):
    """AugMix: each picture plain and in two views, erased in part, collated by views."""
    from PIL import Image
    from timm.data import AugMixDataset, create_transform
    from timm.data.loader import fast_collate

    class Pictures(Dataset):
        transform = None

        def __len__(self):
            return 20

        def __getitem__(self, index):
            return self.transform(Image.new("RGB", (20, 18), (index * 12, 100, 50))), index

    steps = create_transform(
        16, is_training=True, auto_augment="augmix-m3-w2", separate=True, use_prefetcher=True, re_prob=0.0
    )
    pictures = AugMixDataset(Pictures(), num_splits=3)
    pictures.transform = steps
    return DataLoader(pictures, 4, shuffle=True, num_workers=workers, collate_fn=fast_collate, drop_last=True)
