"""The tables: every way to create them, upgrades of older ones, and their constraints."""
