"""What is logged and raised is reported, by hooks of logging that are in place before torch is imported."""

import logging
import sentry_sdk

events = []
sentry_sdk.init("http://key@127.0.0.1:9/1", before_send=lambda event, hint: events.append(event), shutdown_timeout=0)
import torch

logging.getLogger("torch.nn").error("lost %s", torch.ones(1).item())
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError as error:
    sentry_sdk.capture_exception(error)
print([event.get("logger") or event["exception"]["values"][0]["type"] for event in events])
