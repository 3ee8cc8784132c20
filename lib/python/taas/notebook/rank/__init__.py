"""The ranks' side of a distributed cell: `python -m taas.notebook.rank FOLDER`. Needs neither IPython nor torch."""
