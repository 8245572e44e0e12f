"""Chains over HTTP: which message led to which."""
