"""Datasets that read from files and data bases (stored.py), opened as it is commonly done."""

from differential.pipeline import of_samples
from pipelines.stored import (
    Archive,
    ByWorker,
    Database,
    Folder,
    Guarded,
    Held,
    Mapped,
    Memmap,
    OpenDatabase,
    OpenFile,
    Shards,
    Table,
    make_folder_of_images,
)
from torch.utils.data import DataLoader, get_worker_info


@of_samples()
def sqlite_opened_at_first_use(workers):
    return DataLoader(Database(), 4, shuffle=True, num_workers=workers)


@of_samples(refused=r"dataset\.connection .*cannot be pickled.*Open files and connections on first use")
def sqlite_opened_at_once(workers):
    return DataLoader(OpenDatabase(), 4, num_workers=workers)


@of_samples(num_workers=(0,), refused=r"dataset\.file .*cannot be pickled.*Open files and connections on first use")
def a_file_opened_at_once(workers):
    return DataLoader(OpenFile(), 4, num_workers=workers)


@of_samples()
def lines_of_a_mapped_file(workers):
    return DataLoader(Mapped(), 4, shuffle=True, num_workers=workers)


@of_samples()
def tokens_in_a_memmap(workers):
    return DataLoader(Memmap(), 4, shuffle=True, num_workers=workers)


@of_samples()
def members_of_a_zip(workers):
    return DataLoader(Archive(), 4, num_workers=workers)


@of_samples()
def a_table_behind_a_cached_property(workers):
    return DataLoader(Table(), 4, num_workers=workers)


@of_samples()
def shards_behind_lru_cache(workers):
    return DataLoader(Shards(), 4, shuffle=True, num_workers=workers)


@of_samples(num_workers=(2,))
def opened_by_worker_init_fn(workers):
    return DataLoader(
        ByWorker(), 4, num_workers=workers, worker_init_fn=lambda worker: get_worker_info().dataset.open()
    )


@of_samples()
def a_dataset_with_a_lock(workers):
    return DataLoader(Guarded(), 4, num_workers=workers)


@of_samples(refused=r"dataset\.lock .*cannot pickle a lock that is held")
def a_dataset_with_a_lock_that_is_held(workers):
    return DataLoader(Held(), 4, num_workers=workers)


@of_samples()
def a_folder_of_classes(workers):
    return DataLoader(
        Folder(make_folder_of_images("txt"), lambda path: path.read_text()), 4, shuffle=True, num_workers=workers
    )


def needs_pil(path):
    from PIL import Image

    return Image.new("RGB", (4, 3), (len(path.name), 20, 30))


@of_samples(needs=("pillow",))
def images_of_pil(workers):
    return DataLoader(Folder(make_folder_of_images("txt"), needs_pil), 4, num_workers=workers, collate_fn=list)
