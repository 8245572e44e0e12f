"""Where messages go to and come from: RabbitMQ, PostgreSQL itself, or memory."""
