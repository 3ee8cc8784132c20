deepspeed.init_distributed()
