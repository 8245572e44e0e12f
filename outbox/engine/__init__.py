"""Take, do, settle: the engine that relays and works, whatever the adapters around it are."""
