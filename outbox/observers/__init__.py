"""What is made of the engine's events: log lines, metrics."""
