"""What is drawn: tasks, their order and their seeds."""
