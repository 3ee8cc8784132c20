import torch

generator = torch.random.default_generator
print(generator.device, generator.get_state().shape, len({torch.initial_seed(), torch.rand(1).item()}))
print("UNIQUE", torch.initial_seed(), torch.rand(3), torch.get_rng_state().sum())
