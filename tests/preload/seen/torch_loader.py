import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.tensor(index * index), torch.utils.data.get_worker_info().id


if __name__ == "__main__":
    for context in ("fork",):
        print(
            [item for item in torch.utils.data.DataLoader(Squares(), 3, num_workers=2, multiprocessing_context=context)]
        )
