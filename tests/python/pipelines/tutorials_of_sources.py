"""Pipelines after the libraries' tutorials, by names and features no other file uses: a fourth eight, on sources."""

import pathlib
import tempfile

import numpy
import torch
from differential.pipeline import pipeline
from torch.utils.data import DataLoader


def place(name):
    made = pathlib.Path(tempfile.gettempdir(), name)
    made.mkdir(parents=True, exist_ok=True)
    return made


@pipeline(needs=("torch-geometric",), full=True, refused="cannot be pickled")  # it keeps its connection open
def torch_geometric_on_disk(workers):
    """Graphs in a data base that the dataset opens for itself, transformed when they are read."""
    from torch_geometric.data import Data, OnDiskDataset
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.transforms import AddSelfLoops, Compose, Constant

    def graph(number):
        return Data(
            x=torch.full((3 + number % 2, 2), float(number)),
            edge_index=torch.tensor([[0, 1], [2, number % 3]]),
            y=number,
        )

    kept = OnDiskDataset(place("on disk"), transform=Compose([AddSelfLoops(), Constant()]), log=False)
    kept.extend([graph(number) for number in range(24)])
    return GraphLoader(kept, 5, shuffle=True, follow_batch=["x"], num_workers=workers)


@pipeline(
    needs=("monai",),
    full=True,
    refused="cannot be pickled",  # the thread that replaces it
    before_epoch=lambda loader, epoch: loader.dataset.renew(epoch),
)
def monai_smart_cache(workers):
    """A cache of which a part is replaced between two epochs."""
    from monai.data import SmartCacheDataset, set_track_meta
    from monai.transforms import Compose, EnsureType, ScaleIntensityRange

    class Renewed(SmartCacheDataset):
        def renew(self, epoch):
            if epoch:
                self.update_cache()

    set_track_meta(False)  # which numbers objects by their addresses
    steps = Compose([EnsureType(), ScaleIntensityRange(0, 30, 0, 1)])
    rows = [numpy.full((2, 3), number, numpy.float32) for number in range(30)]
    kept = Renewed(rows, steps, replace_rate=0.25, cache_num=16, seed=3, shuffle=True, progress=False)
    kept.start()
    return DataLoader(kept, 4, shuffle=True, num_workers=workers)


@pipeline(needs=("lhotse", "soundfile"), full=True, random=True, resumes=False)
def lhotse_recognition(workers):
    """Speech recognition: wav files of several lengths, filter banks on the fly, SpecAugment, supervisions."""
    import soundfile
    from lhotse import CutSet, Fbank, MonoCut, Recording, SupervisionSegment
    from lhotse.dataset import K2SpeechRecognitionDataset, SimpleCutSampler, SpecAugment
    from lhotse.dataset.input_strategies import OnTheFlyFeatures

    def cut(number):
        path = place("speech") / f"{number}.wav"
        length = 0.5 + number % 4 / 10
        soundfile.write(path, numpy.sin(numpy.arange(int(16000 * length)) * (number + 1) / 100) / 2, 16000)
        words = SupervisionSegment(f"s{number}", f"{number}", 0, length, text=f"word {number}")
        return MonoCut(
            f"c{number}", 0, length, 0, [words], recording=Recording.from_file(path, recording_id=f"{number}")
        )

    cuts = CutSet.from_cuts(cut(number) for number in range(16))
    spoken = K2SpeechRecognitionDataset(input_strategy=OnTheFlyFeatures(Fbank()), input_transforms=[SpecAugment(p=1.0)])
    return DataLoader(
        spoken,
        batch_size=None,
        sampler=SimpleCutSampler(cuts, max_duration=2.5, shuffle=True, seed=3),
        num_workers=workers,
    )


@pipeline(needs=("litdata",), full=True, resumes=False, seconds=180.0)
def litdata_combined(workers):
    """Two streams of chunks, of which one is read more often than the other."""
    from litdata import CombinedStreamingDataset, StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    def streamed(name, rows):
        writer = BinaryWriter(str(place(name)), chunk_size=6)
        for number in range(rows):
            writer[number] = {"from": name, "value": numpy.full(3, number)}
        writer.done()
        writer.merge()
        return StreamingDataset(str(place(name)), seed=3)

    both = CombinedStreamingDataset(
        [streamed("much", 30), streamed("little", 18)], weights=[0.8, 0.2], seed=5, iterate_over_all=False
    )
    return DataLoader(both, 4, num_workers=workers)


@pipeline(needs=("datasets", "pillow"), full=True)
def huggingface_folder_of_images(workers):
    """A folder of images with a table of metadata, as load_dataset reads it, shuffled, and transformed when read."""
    import json

    from datasets import load_dataset
    from PIL import Image

    folder = place("pictures/train")
    for number in range(20):
        Image.new("RGB", (8, 6), (number, 2 * number, 3)).save(folder / f"{number}.png")
    told = [json.dumps({"file_name": f"{row}.png", "text": f"picture {row}"}) for row in range(20)]
    (folder / "metadata.jsonl").write_text("\n".join(told))
    pictures = load_dataset(
        "imagefolder", data_dir=str(place("pictures")), split="train", cache_dir=str(place("cache"))
    )

    def shown(rows):
        rows["pixels"] = [torch.from_numpy(numpy.array(image.convert("L").resize((4, 4)))) for image in rows["image"]]
        return {"pixels": rows["pixels"], "text": rows["text"]}

    pictures = pictures.shuffle(seed=7).select(range(16)).flatten_indices()
    pictures.set_transform(shown)
    return DataLoader(pictures, 4, shuffle=True, num_workers=workers)


@pipeline(needs=("tokenizers", "transformers"), full=True)
def translation_grouped_by_length(workers):
    """Trainer's group_by_length: mega-batches sorted by length, labels padded with -100."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import DataCollatorForSeq2Seq, PreTrainedTokenizerFast
    from transformers.trainer_pt_utils import LengthGroupedSampler

    words = {word: number for number, word in enumerate(["<pad>", "<unk>", *(f"w{number}" for number in range(30))])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", unk_token="<unk>")
    rows = [
        tokenizer(
            " ".join(f"w{(row * 3 + word) % 35}" for word in range(2 + row * 5 % 11)), text_target="w1 " * (1 + row % 6)
        )
        for row in range(40)
    ]
    return DataLoader(
        rows,
        4,
        sampler=LengthGroupedSampler(4, rows),
        num_workers=workers,
        collate_fn=DataCollatorForSeq2Seq(tokenizer, pad_to_multiple_of=4),
    )


@pipeline(needs=("webdataset", "pillow"), full=True, resumes=False, num_workers=(2,))
def webdataset_decoded_images(workers):
    """Shards written by TarWriter, dealt to nodes and workers, shuffled by epoch, images decoded to tensors."""
    import webdataset

    for shard in range(4):
        with webdataset.TarWriter(str(place("tars") / f"images-{shard}.tar")) as writer:
            for row in range(6):
                writer.write(
                    {
                        "__key__": f"{shard}{row}",
                        "png": numpy.full((5, 4, 3), (shard * 40 + row) / 255),
                        "json": {"row": row},
                    }
                )
    made = webdataset.DataPipeline(
        webdataset.SimpleShardList(str(place("tars") / "images-{0..3}.tar")),
        webdataset.detshuffle(4),
        webdataset.split_by_node,
        webdataset.split_by_worker,
        webdataset.tarfile_to_samples(),
        webdataset.detshuffle(5, 2),
        webdataset.decode("torchrgb"),
        webdataset.to_tuple("png", "json", "__key__"),
        webdataset.batched(3),
    )
    return DataLoader(made, batch_size=None, num_workers=workers)


@pipeline(needs=("kornia",), full=True, random=True)
def kornia_images_masks_and_boxes(workers):
    """Images, masks, boxes and points of a whole batch augmented together, while it is collated."""
    import kornia.augmentation as augmentation

    steps = augmentation.AugmentationSequential(
        augmentation.RandomHorizontalFlip(p=0.5),
        augmentation.RandomAffine(20.0, p=0.7),
        augmentation.ColorJiggle(0.2, 0.2, p=0.5),
        augmentation.RandomCrop((8, 8)),
        data_keys=["input", "mask", "bbox_xyxy", "keypoints"],
        same_on_batch=False,
    )

    def sample(number):
        image = torch.linspace(0, 1, 3 * 12 * 12).view(3, 12, 12) * (number + 1) / 20
        return (
            image,
            (image[:1] > 0.3).float(),
            torch.tensor([[1.0, 2.0, 7.0, 9.0]]),
            torch.tensor([[3.0, 4.0], [5.0, 1.0]]),
        )

    return DataLoader(
        [sample(number) for number in range(20)],
        4,
        shuffle=True,
        num_workers=workers,
        collate_fn=lambda rows: steps(*(torch.stack(part) for part in zip(*rows))),
    )
