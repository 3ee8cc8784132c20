model = nn.DataParallel(model)
