taas.unregister(data_loader)
