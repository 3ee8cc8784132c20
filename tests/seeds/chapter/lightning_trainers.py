trainer = Trainer(..., accelerator="gpu", devices=8, strategy="ddp")

# или

trainer = Trainer(..., accelerator="gpu", devices=8, strategy="ddp", num_nodes=4) # 8*4 = 32 gpus
