"""Files of a cell, and how they are removed whatever happens."""
