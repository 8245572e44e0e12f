"""Traces and log fields: spans of publishing, sending and handling, on real servers."""
