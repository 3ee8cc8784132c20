"""A finder is there before torch is imported: packages get the attributes that their modules are, all the same."""

import six  # noqa: F401  # as pandas brings it
import urllib.request  # noqa: F401
import http
import torch
import concurrent
import email

print(hasattr(http, "client"), hasattr(concurrent, "futures"), hasattr(email, "message"), torch.ones(2).tolist())
