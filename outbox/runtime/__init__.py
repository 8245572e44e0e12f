"""What the processes share: environment, health, brokers, observers, consumers by name, garbage collection."""
