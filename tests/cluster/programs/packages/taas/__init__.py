"""In the place of the package, of which only the data worker is needed."""
