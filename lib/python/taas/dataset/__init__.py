"""A dataset on its way to data workers, and whether it has changed since."""
