"""The training process: where batches come from, and the loop that they go to."""
