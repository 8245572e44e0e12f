"""One worker of ours, and those of others."""
