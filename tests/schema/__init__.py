"""The tables: every road to them, taking over older ones, and what they themselves enforce."""
