import taas

data_loader=DataLoader(DataSet)
taas.register(data_loader)
