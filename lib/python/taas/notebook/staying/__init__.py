"""Ranks that stay between cells with their variables: `%%taas --stay`, `%%rank 0,2`, `%taas stay` and `%taas end`."""
