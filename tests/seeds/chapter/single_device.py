# PyTorch
device = torch.device("cuda:0")
model.to(device)
