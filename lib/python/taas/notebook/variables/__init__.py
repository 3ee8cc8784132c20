"""Variables of the notebook on their way to ranks and back."""
