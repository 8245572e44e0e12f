"""`outbox token`: a token that is shown once, and the entry that lets it in."""

import json

from click.testing import CliRunner

from outbox.admin.principals import Tokens
from outbox.cli.command import main


def test_it_shows_a_token_and_the_entry_that_lets_it_in() -> None:
    result = CliRunner().invoke(main, ["token", "--name", "alice", "--role", "operator", "--json"])
    made = json.loads(result.output)
    found = Tokens.parse([made["entry"]]).find(made["token"])
    assert found is not None
    assert (found.name, found.role, str(found)) == ("alice", "operator", made["entry"])


def test_people_are_told_what_to_set() -> None:
    output = CliRunner().invoke(main, ["token", "--name", "bob"]).output
    assert "OUTBOX_ADMIN_TOKENS=bob:viewer:" in output
    assert "    outbox_" in output


def test_an_impossible_name_is_a_sentence() -> None:
    result = CliRunner().invoke(main, ["token", "--name", "a:b"])
    assert (result.exit_code, result.output) == (1, "outbox: a name must be up to 100 letters, digits and .@+-_\n")
