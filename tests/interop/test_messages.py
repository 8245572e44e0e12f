"""What the functions of `outbox.interop` return and refuse, without a worker."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest

from outbox import OutboxMessage, tracking
from outbox.errors import ConfigurationError, EncodingError
from outbox.interop import celery, dramatiq, faststream, taskiq

FRAMEWORKS = ("celery", "cloudevents", "dramatiq", "faststream", "kombu", "taskiq")
FUNCTIONS = [celery.task, dramatiq.message, taskiq.task]


def test_making_messages_imports_no_framework_and_no_driver() -> None:
    program = (
        "from outbox.interop import celery, cloudevents, dramatiq, faststream, taskiq\nimport sys\n"
        f"print(sorted({{'aio_pika', 'asyncpg', *{FRAMEWORKS}}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ), check=True)
    assert done.stdout == "[]\n"


def test_a_celery_task_is_the_root_of_its_own_chain_unless_it_belongs_to_one() -> None:
    own = celery.task("shop.send_mail", [7], task_id="t1")
    embed = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    headers = {"lang": "py", "task": "shop.send_mail", "id": "t1", "root_id": "t1"}
    assert own == OutboxMessage("celery", [[7], {}, embed], headers=headers)
    with tracking(["root", "cause"]):
        effect = celery.task("shop.send_mail", task_id="t2", queue="mail", headers={"lang": "go"}, dedup_key="k")
    headers = {"lang": "go", "task": "shop.send_mail", "id": "t2", "root_id": "root", "parent_id": "cause"}
    assert effect == OutboxMessage("mail", [[], {}, embed], headers=headers, dedup_key="k")


def test_each_call_has_an_id_of_its_own() -> None:
    ids = [celery.task("a").headers, celery.task("a").headers]
    assert ids[0] != ids[1]
    for make, name in ((dramatiq.message, "message_id"), (taskiq.task, "task_id")):
        first, second = (make("a").body for _ in range(2))
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        assert first[name] != second[name]


@pytest.mark.parametrize("make", FUNCTIONS)
@pytest.mark.parametrize(
    ("name", "args", "kwargs", "message"),
    [
        ("", (), None, "the name of the function to call must be non-empty text"),
        (print, (), None, "the name of the function to call must be non-empty text"),
        ("a", "order 7", None, "args of 'a' must be a list or a tuple, not str"),
        ("a", 7, None, "args of 'a' must be a list or a tuple, not int"),
        ("a", (), [7], "kwargs of 'a' must be a mapping, not list"),
        ("a", (), {7: 8}, "kwargs of 'a' must have text as names, not 7"),
    ],
)
def test_what_cannot_be_a_call_is_refused_when_the_message_is_made(
    make: Any, name: Any, args: Any, kwargs: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make(name, args, kwargs)


def test_numbers_that_json_does_not_have_are_null_for_faststream_as_in_models() -> None:
    assert faststream.message("order.placed", {"weight": float("nan"), "sizes": [float("inf")]}).body == (
        b'{"weight":null,"sizes":[null]}'
    )


def test_a_body_that_pydantic_cannot_serialise_is_refused_with_its_routing_key() -> None:
    with pytest.raises(EncodingError, match=r"the body of 'order\.placed' cannot be serialised"):
        faststream.message("order.placed", object())
