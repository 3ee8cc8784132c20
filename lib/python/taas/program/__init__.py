"""The state of the training program that its data workers are to have."""
