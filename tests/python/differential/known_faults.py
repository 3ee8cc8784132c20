"""Pipelines that are not delivered as promised yet: the number of the fault, and why. An entry whose pipeline passes fails."""

KNOWN_FAULTS: dict[str, tuple[int, str]] = {
}
