"""Messages in the outbox: pages by state, and where one message is, and why."""
