"""What RabbitMQ in particular promises, beyond what every transport does."""
