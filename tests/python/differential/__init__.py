"""Runs pipelines plain and registered, in processes of their own, and compares what the loops saw."""
