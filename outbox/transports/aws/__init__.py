"""Amazon SQS and SNS, through aiobotocore."""

from outbox.errors import MissingExtraError

try:
    import aiobotocore as _  # noqa: F401  asked for here, so that its absence is explained once
except ModuleNotFoundError as error:
    raise MissingExtraError(purpose="AWS", extra="aws") from error

from outbox.transports.aws.source import AwsSource
from outbox.transports.aws.transport import AwsTransport

__all__ = ["AwsSource", "AwsTransport"]
