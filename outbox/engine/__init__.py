"""The engine of relays and workers, independent of the adapters: takes messages, handles them, settles the outcomes."""
