"""A finder decorates the functions of a module, and shapes of the program's own tensors are checked."""

from jaxtyping import Float, install_import_hook, jaxtyped

with install_import_hook("colorsys", None):
    import torch
    import colorsys
from typeguard import typechecked


@jaxtyped(typechecker=typechecked)
def double(x: Float[torch.Tensor, "two"]) -> Float[torch.Tensor, "two"]:  # noqa: F821
    return x * 2


print(double(torch.ones(2)).tolist(), type(colorsys.__loader__).__name__)
try:
    double(torch.ones(2, 3))
except Exception as error:
    print(type(error).__name__)
