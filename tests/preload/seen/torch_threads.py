import torch

print(
    torch.get_num_threads(), torch.get_num_interop_threads(), torch.__config__.parallel_info().split("Environment")[0]
)
print((torch.ones(300, 300) @ torch.ones(300, 300)).sum())
