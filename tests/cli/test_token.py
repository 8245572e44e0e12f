"""`outbox token`: a token that is printed once, and its entry for the service."""

import json

from click.testing import CliRunner

from outbox.admin.principals import Tokens
from outbox.cli.command import main


def test_it_prints_a_token_and_its_entry() -> None:
    result = CliRunner().invoke(main, ["token", "--name", "alice", "--role", "operator", "--json"])
    made = json.loads(result.output)
    found = Tokens.parse([made["entry"]]).find(made["token"])
    assert found is not None
    assert (found.name, found.role, str(found)) == ("alice", "operator", made["entry"])


def test_it_prints_the_setting_for_the_entry() -> None:
    output = CliRunner().invoke(main, ["token", "--name", "bob"]).output
    assert "OUTBOX_ADMIN_TOKENS=bob:viewer:" in output
    assert "    outbox_" in output


def test_an_invalid_name_is_one_sentence() -> None:
    result = CliRunner().invoke(main, ["token", "--name", "a:b"])
    assert (result.exit_code, result.output) == (1, "outbox: a name must be up to 100 letters, digits and .@+-_\n")
