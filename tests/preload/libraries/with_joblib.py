"""Functions in other processes, which import torch themselves."""

import joblib
import torch


def work(x):
    return torch.ones(x).sum().item(), __name__


if __name__ == "__main__":
    print(joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(work)(x) for x in (1, 2)))
    print(joblib.Parallel(n_jobs=2, backend="multiprocessing")(joblib.delayed(work)(x) for x in (1, 2)))
