"""A batch as bytes, and as objects again."""
