import torch

print(torch.cuda.is_initialized(), torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda._is_in_bad_fork())
print(
    torch.get_default_dtype(),
    torch.is_grad_enabled(),
    torch.is_inference_mode_enabled(),
    torch.backends.mkldnn.is_available(),
)
