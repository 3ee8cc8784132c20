"""Pipelines that are drawn from a seed: where a number is kept, what it is nested in, and when it changes."""
