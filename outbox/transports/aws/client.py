"""Clients of SQS and SNS: what a URL says, calls whose errors are sorted, and the names and addresses of queues and topics."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from itertools import islice
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qsl, urlsplit

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from outbox.core.urls import (
    ROUTING_KEY_IN_TOPIC,
    aws_names,
    boolean_option,
    is_host,
    number_option,
    redacted,
    server_address,
)
from outbox.errors import BrokerUnavailableError, ConfigurationError, UrlError
from outbox.ports import Guarantees

CONNECT_TIMEOUT = timedelta(seconds=5)
READ_TIMEOUT = timedelta(seconds=10)
LONGEST_POLL = timedelta(seconds=20)
"""Longest wait of SQS for messages."""
VISIBILITY_TIMEOUT = 30
"""Seconds without a heartbeat after which SQS gives the messages of a worker to another one."""
BATCH = 10
"""Most messages of one request."""
MOST_CONNECTIONS = 100
LARGE_BODY = 512 * 1024
"""Bytes of a request from which on it is sent in pieces."""
FIFO = ".fifo"

DENIED = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException"})
MISSING = frozenset({"NonExistentQueue", "QueueDoesNotExist", "NotFound", "NotFoundException"})

_CREDENTIALS = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_BUSY = re.compile("throttl|TooManyRequests|RequestLimitExceeded|OverLimit|SlowDown", re.IGNORECASE)
_OPTIONS = {"endpoint_url", "account", "create", "visibility_timeout", "wait_time"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}(\.fifo)?")
"""The name of a queue. Five characters are left for `.fifo`."""
_FOREIGN = "AWS is unavailable: something else answers, such as a proxy"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsOptions:
    """What a URL says.

    `service` is `sqs` or `sns`. `name` is the topic, or the name of the queues, in which `{routing_key}` stands for that.
    `endpoint_url` replaces AWS's own. `account` owns the topic, or with `sqs` the queues; None is that of the
    credentials. `create`: workers create what is missing in their own account. `visibility_timeout` and `wait_time` are in
    seconds, for a worker's requests for messages.
    """

    service: str
    region: str
    name: str
    endpoint_url: str | None
    account: str | None
    create: bool
    visibility_timeout: int
    wait_time: int

    @classmethod
    def parse(cls, url: str) -> "AwsOptions":
        """Reads a URL. Raises `ConfigurationError`, which contains no secrets."""
        service, region, name = aws_names(url)
        given = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
        known = _OPTIONS | ({"queue"} if service == "sqs" else set())
        if unknown := sorted(given.keys() - known):
            raise ConfigurationError(
                f"broker has the option {unknown[0]!r:.100}, which is not one of {', '.join(sorted(known))}"
            )
        if service == "sqs":
            check_template(name)
        endpoint = given.get("endpoint_url")
        if endpoint is not None:
            address = re.fullmatch("https?://([^/]*)/?", endpoint)
            if address is None or not is_host(address[1]):
                raise UrlError("broker has an endpoint_url that is no address: write endpoint_url=http://host:port")
        account = given.get("account")
        if account is not None and not re.fullmatch("[0-9]{12}", account):
            raise ConfigurationError("broker has an account that is not a number of 12 digits")
        return cls(
            service=service,
            region=region,
            name=name,
            endpoint_url=endpoint,
            account=account,
            create=boolean_option(given, "create", default=True),
            visibility_timeout=number_option(given, "visibility_timeout", default=VISIBILITY_TIMEOUT, most=43_200),
            wait_time=number_option(given, "wait_time", default=1, most=int(LONGEST_POLL.total_seconds())),
        )

    @property
    def guarantees(self) -> Guarantees:
        """Order needs FIFO. With a queue for each routing key there are no wildcards; a topic drops what no filter matches."""
        has_topic = self.service == "sns"
        has_patterns = has_topic or ROUTING_KEY_IN_TOPIC not in self.name
        return Guarantees(ordered=self.is_fifo, patterns=has_patterns, unroutable=not has_topic, keeps_state=False)

    @property
    def is_fifo(self) -> bool:
        """Whether the queues or the topic keep an order."""
        return self.name.endswith(FIFO)


class _Answer(dict[str, Any]):
    """An answer of AWS. Raises `BrokerUnavailableError` for a part that each of its answers to the request would have."""

    def __missing__(self, name: str) -> NoReturn:
        raise BrokerUnavailableError(f"{_FOREIGN}, without {name}")


class Aws:
    """Clients of AWS's services in one region, which are created when they are first used.

    Credentials come from AWS's own chain: environment, configuration files, roles.
    """

    def __init__(self, options: AwsOptions) -> None:
        self._options = options
        self._clients: dict[str, Any] = {}
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._session = get_session()

    async def call(self, service: str, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Calls an operation, once.

        Raises `BrokerUnavailableError` if AWS is away or busy, refuses the credentials, or if something else answers, such as a
        proxy, and `ClientError` for another answer about the request; `code_of` has its code.
        """
        try:
            client = self._clients.get(service) or await self._create(service)
            answer: Mapping[str, Any] = await getattr(client, operation)(**parameters)
        except ClientError as error:
            status, code = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0), code_of(error)
            if code in _CREDENTIALS:
                raise BrokerUnavailableError(f"AWS refuses the credentials of this process: {text_of(error)}") from error
            if status >= 500 or status == 429 or is_busy(code):
                raise BrokerUnavailableError(f"AWS is unavailable: {text_of(error)}") from error
            raise
        except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
            raise BrokerUnavailableError(
                f"this process has no credentials of AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give it a role "
                f"({text_of(error)})"
            ) from error
        except (BotoCoreError, OSError) as error:
            raise BrokerUnavailableError(f"AWS is unavailable: {text_of(error)}") from error
        # What botocore makes of an answer that it does not understand.
        except (ResponseParserError, UnicodeDecodeError, AttributeError, KeyError) as error:
            raise BrokerUnavailableError(f"{_FOREIGN}: {text_of(error)}") from error
        return _Answer(answer)

    async def queue_url(self, name: str) -> str | None:
        """Returns the URL of a queue; None if it does not exist. Raises the errors of `call`."""
        account = self._options.account if self._options.service == "sqs" else None
        owner = {} if account is None else {"QueueOwnerAWSAccountId": account}
        try:
            return str((await self.call("sqs", "get_queue_url", QueueName=name, **owner))["QueueUrl"])
        except ClientError as error:
            if code_of(error) in MISSING:
                return None
            raise

    async def topic_arn(self) -> str:
        """Returns the ARN of the topic, which may not exist. Raises the errors of `call`."""
        account = self._options.account
        if account is None:
            account = (await self.call("sts", "get_caller_identity"))["Account"]
        client = self._clients.get("sns") or await self._create("sns")
        return f"arn:{client.meta.partition}:sns:{self._options.region}:{account}:{self._options.name}"

    async def topic_attributes(self, arn: str) -> Mapping[str, str] | None:
        """Returns the attributes of the topic; None if it does not exist. Raises the errors of `call`."""
        try:
            attributes: Mapping[str, str] = (await self.call("sns", "get_topic_attributes", TopicArn=arn))["Attributes"]
        except ClientError as error:
            if code_of(error) in MISSING:
                return None
            raise
        return attributes

    async def close(self) -> None:
        """Closes the connections. They are opened again when they are needed."""
        async with self._lock:
            self._clients.clear()
            await self._stack.aclose()

    async def _create(self, service: str) -> Any:
        async with self._lock:
            if service not in self._clients:
                options = self._options
                config = AioConfig(
                    connect_timeout=CONNECT_TIMEOUT.total_seconds(),
                    read_timeout=READ_TIMEOUT.total_seconds() + options.wait_time,
                    # A relay or worker that calls again knows best when.
                    retries={"total_max_attempts": 1, "mode": "standard"},
                    max_pool_connections=MOST_CONNECTIONS,
                    # Reads the descriptions of the service in a thread, which takes some 100 ms.
                    warm_up_loader_caches=True,
                )
                creating = self._session.create_client(
                    service, region_name=options.region, endpoint_url=options.endpoint_url, config=config
                )
                client = await self._stack.enter_async_context(creating)
                client.meta.events.register("before-send", _stream_large_body)
                self._clients[service] = client
            return self._clients[service]


def _stream_large_body(request: Any, **_: Any) -> None:
    # aiohttp warns of larger ones in one piece.
    if isinstance(request.body, bytes) and len(request.body) > LARGE_BODY:
        request.body = BytesIO(request.body)


def code_of(error: ClientError) -> str:
    """Returns AWS's code of an error, without the name of the service."""
    return str(error.response.get("Error", {}).get("Code", "")).rpartition(".")[2]


def is_busy(code: str) -> bool:
    """Whether an error says that there are too many requests."""
    return _BUSY.search(code) is not None


def text_of(error: BaseException) -> str:
    """Returns the text of an error, without secrets."""
    return redacted(str(error)) or type(error).__name__


def sqs_name(text: str) -> str:
    """Returns the name of a queue in SQS, which has `-` for a dot. Raises `ValueError` if SQS cannot have such a queue."""
    stem = text.removesuffix(FIFO)
    name = stem.replace(".", "-") + text[len(stem) :]
    if not _NAME.fullmatch(name):
        raise ValueError(f"{text!r:.200} cannot be the name of a queue in SQS: up to 75 letters, digits, dots, - and _")
    return name


def check_template(template: object) -> None:
    """Raises `ConfigurationError` unless `template` can name queues."""
    named = template.replace(ROUTING_KEY_IN_TOPIC, "key") if isinstance(template, str) else ""
    try:
        sqs_name(named)
    except ValueError:
        raise ConfigurationError(
            f"queue must be the name of a queue, in which {ROUTING_KEY_IN_TOPIC} stands for the routing key, or in Python a "
            f"function from routing keys to queues, not {template!r:.100}"
        ) from None


def destination_of(url: str, options: AwsOptions, template: str) -> str:
    """Describes where messages go, without secrets."""
    where = server_address(url) + (f", queue {template}" if options.service == "sqs" else "")
    where += f", account {options.account}" if options.account else ""
    return where + (f", at {options.endpoint_url}" if options.endpoint_url else "")


def batches(items: Sequence[_T]) -> list[list[_T]]:
    """Cuts `items` into lists of one request each."""
    rest = iter(items)
    return list(iter(lambda: list(islice(rest, BATCH)), []))
