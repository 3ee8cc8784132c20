"""The process that makes batches."""
