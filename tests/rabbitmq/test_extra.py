"""Without aio-pika, the error says what to install."""

import subprocess
import sys

WITHOUT_AIO_PIKA = """
import sys
sys.modules["aio_pika"] = None
from outbox.errors import MissingExtraError
try:
    import outbox.transports.rabbitmq
except MissingExtraError as error:
    print(error)
"""


def test_a_missing_extra_is_named() -> None:
    answer = subprocess.run([sys.executable, "-c", WITHOUT_AIO_PIKA], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout == 'RabbitMQ needs an extra that is not installed: pip install "fastapi-outbox[rabbitmq]"\n'
