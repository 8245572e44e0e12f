"""Topology: exchanges, queues, bindings and consumers, and what is wrong with them."""
