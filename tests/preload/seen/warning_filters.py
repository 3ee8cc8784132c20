import warnings


def told():
    return [
        (action, message and message.pattern, category.__name__, module and getattr(module, "pattern", module), line)
        for action, message, category, module, line in warnings.filters
    ]


print(told())
warnings.warn("deprecated here", DeprecationWarning)
warnings.simplefilter("error", UserWarning)
import torch

print(told(), torch.__name__)
