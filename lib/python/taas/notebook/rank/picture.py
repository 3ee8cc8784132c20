"""A figure of matplotlib as a picture."""

from __future__ import annotations

import base64
import io
from typing import Any


def picture(figure: Any) -> str:
    """A PNG, in base64."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return base64.b64encode(file.getvalue()).decode()
