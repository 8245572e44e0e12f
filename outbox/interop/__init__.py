"""Messages in the formats of other frameworks, and CloudEvents. Making one needs no framework to be installed.

Each module returns an `OutboxMessage`, which you publish in your own transaction. A worker of the framework consumes it from
RabbitMQ, once its queue is bound to the relay's exchange.
"""
