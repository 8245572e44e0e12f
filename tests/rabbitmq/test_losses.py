"""What aiormq raises once a connection is gone, in whatever form, is told as a loss."""

import aiormq
import pytest

from outbox.transports.rabbitmq.connection import LostError, losses


async def test_a_future_on_a_channel_whose_connection_was_closed_is_a_loss(broker_url: str) -> None:
    """aiormq rejects it twice, for the channel and for the connection, and stumbles over the second."""
    connection = await aiormq.connect(broker_url)
    channel = await connection.channel()
    await channel.close()
    await connection.close()
    with pytest.raises(LostError), losses():
        channel.create_future()
