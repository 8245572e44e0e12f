"""Secrets in free text, in the many forms in which libraries, databases and people write them."""

import json
from urllib.parse import quote

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.core.outcome import Failure
from outbox.masking import HIDDEN, Masking
from outbox.postgres.pool import reason_of

MASKING = Masking()
S = "h9Kx-27qLw"

FORMS = [
    # a key that is no secret before one that is
    f"ValueError: card_number: {S} was declined",
    f"card_number: {S} was declined",
    f'Traceback (most recent call last):\n  File "/app/pay.py", line 3, in pay\n    raise X\nX: card_number: {S} was declined',
    f"refused: api_key: {S}",
    f"error: refused: upstream: api_key={S}",
    f"payments.errors.Declined: reason: token: {S}",
    f"{{'payload': '{{\"token\": \"{S}\"}}'}}",
    f"payload={{'token': '{S}'}}",
    f'body: {{"user": {{"password": "{S}"}}}} refused',
    f"detail = \"{{'secret': '{S}'}}\"",
    # lists, tuples, nested values
    f"{{'tokens': ['a', '{S}']}}",
    f"tokens=['first', '{S}', 'third']",
    f"passwords: [\n  'a',\n  '{S}'\n]",
    f"credentials={{'user': 'ann', 'key': '{S}'}}",
    f"secrets=('x', ('y', '{S}'))",
    f"token={{'value': {{'inner': '{S}'}}}}",
    f"passwords={{'a}}b', '{S}'}}",
    f"tokens=['it]s', '{S}']",
    # databases and drivers
    f'duplicate key value violates unique constraint "users_api_key_key"\nDETAIL:  Key (api_key)=({S}) already exists.',
    f"Key (email, password)=(ann@example.com, {S}) already exists.",
    f"Key (lower(token))=({S}) already exists.",
    f'Key (token)=({S}) is not present in table "sessions".',
    f'Key (session_token)=({S}) is still referenced from table "t".',
    f"DETAIL:  Key (pin)=({S})",
    f'null value in column "name" violates not-null constraint\nDETAIL:  Failing row contains (1, ann, {S}, null).',
    f"DETAIL:  Failing row contains (1, two\nlines, {S}).\nCONTEXT:  x",
    f"(psycopg.errors.NotNullViolation) no\n[SQL: insert into users]\n[parameters: ('ann', '{S}')]\n(Background: x)",
    f"[parameters: {{'name': 'ann', 'hash': '{S}'}}]",
    f"[parameters: [{{'a': ']', 'b': '{S}'}}]]",
    f"CONTEXT:  unnamed portal with parameters: $1 = 'ann', $2 = '{S}'",
    f'CONTEXT:  COPY users, line 1, column password: "{S}"',
    f"invalid dsn: host=db user=ann password={S} dbname=shop",
    f"invalid dsn: host=db password='{S}' dbname=shop",
    f"could not connect to postgresql://ann:{S}@db:5432/shop",
    f"redis://:{S}@cache:6379/0 refused",
    f"amqps://shop:{quote(S + '%/')}@rabbit/vhost",
    f"https://{'user'}:{S}@example.com/path failed",
    f"mongodb+srv://ann:{S}@cluster/db",
    # headers
    f"Authorization: Token {S}",
    f"authorization: Bearer {S}",
    f"Authorization: {S}",
    f'Authorization: Digest username="ann", realm="x", response="{S}"',
    f"Authorization: AWS4-HMAC-SHA256 Credential=AKIA/20260101, SignedHeaders=host, Signature={S}",
    f"Proxy-Authorization: Basic {S}",
    f"> GET / HTTP/1.1\n> Authorization: Custom {S}\n> Accept: */*",
    f"headers={{'Authorization': 'Token {S}', 'Accept': '*/*'}}",
    f"[('authorization', 'Token {S}'), ('accept', '*/*')]",
    f"[(b'host', b'x'), (b'authorization', b'Basic {S}')]",
    f"Headers([('host', 'x'), ('x-api-key', '{S}')])",
    f"X-Api-Key: {S}",
    f"x-auth-token: {S}",
    f"Cookie: theme=dark; sid={S}; lang=en",
    f"Cookie: a={S}",
    f"Set-Cookie: session={S}; Path=/; HttpOnly",
    f"{{'cookie': 'a=b; c={S}'}}",
    f"curl -H 'Authorization: Bearer {S}' https://x",
    f'curl -H "X-Api-Key: {S}"',
    f"Bearer {S}",
    f"sent with bearer {S} to ann",
    # URLs, forms, command lines
    f"GET /callback?code=1&access_token={S}&state=2",
    f"https://example.com/?password={S}#top",
    f"https://example.com/?api_key%3D{S}",
    f"https://example.com/#id_token={S}",
    f"grant_type=password&username=ann&password={S}",
    f"user[password]={S}&user[name]=ann",
    f"mysql --user ann --password {S} --host db",
    f"mysql --password={S}",
    f"tool --api-key {S}",
    f"export DB_PASSWORD={S}",
    f"AWS_SECRET_ACCESS_KEY={S}",
    f'Content-Disposition: form-data; name="password"\r\n\r\n{S}\r\n--boundary',
    f'form-data; name="card_number"\\r\\n\\r\\n{S}\\r\\n--b',
    # JSON, escaped, cut, in other notations
    f'{{"password": "{S}"}}',
    f'{{"password":"{S}',
    f'{{\\"password\\": \\"{S}\\"}}',
    f'{{\\\\\\"password\\\\\\": \\\\\\"{S}\\\\\\"}}',
    f'b\'{{"token": "{S}"}}\'',
    f"&quot;password&quot;:&quot;{S}&quot;",
    f"%22password%22:%22{S}%22",
    f"{{password: {S}}}",
    f"password: '{S}'",
    f'password: "{S}"',
    f"password: `{S}`",
    f"password = {S}",
    f"password := {S}",
    f"password == '{S}'",
    f"password => {S}",
    f':password => "{S}"',
    f'data["password"] = "{S}"',
    f"data['password']: '{S}'",
    f"$.user.password: {S}",
    f"user.password={S}",
    f"USER_PASSWORD:{S}",
    f"userPassword={S}",
    f"user-password: {S}",
    f"password:\n  {S}",
    f"password\t:\t{S}",
    f"password: \t{S}",
    f'password: "a\\"{S}"',
    f"password: 'a\\'{S}'",
    f"password: '''{S}'''",
    f"secret key: {S}",
    f"social security number: {S}",
    f"card number {S}",
    # names and values apart
    f"{{'name': 'password', 'value': '{S}'}}",
    f"{{'value': '{S}', 'name': 'password'}}",
    f'[{{"key": "api_key", "value": "{S}"}}, {{"key": "x", "value": 1}}]',
    f'{{\\"name\\": \\"token\\", \\"value\\": \\"{S}\\"}}',
    f"Header(name='authorization', value='{S}')",
    f"Field(value='{S}', name='cvv')",
    f"('password', '{S}')",
    f'refused ["token", "{S}"] of ann',
    f"first line\\npin: {S}",
    # Python reprs
    f"User(name='ann', password='{S}')",
    f"User(name='ann', token=b'{S}', age=3)",
    f"login(user='ann', password='{S}')",
    f"Account(secret=Decimal('{S}'))",
    f"Account(token=UUID('{S}'), id=1)",
    f"<User password='{S}' id=3>",
    f"<User password={S} id=3>",
    f"namespace(token='{S}')",
    f"OrderedDict([('token', '{S}')])",
    f"KeyError: {{'token': '{S}'}}",
    # pydantic
    f"1 validation error for User\npin\n  wrong [type=x, input_value='{S}', input_type=str]",
    f"1 validation error for User\npin\n  wrong [type=x, input_value='{S}",
    f"1 validation error for User\n  Value error [type=value_error, input_value={{'password': '{S}'}}, input_type=dict]",
    f"[{{'type': 'int_parsing', 'loc': ('pin',), 'msg': 'no', 'input': '{S}'}}]",
    f'[{{"type": "x", "loc": ["body", "pin"], "msg": "no", "input": "{S}"}}]',
    # markup
    f"<password>{S}</password>",
    f'<ns:password type="x">{S}</ns:password>',
    f"<user><password><![CDATA[{S}]]></password></user>",
    f"<password>\n  {S}\n</password>",
    f'<user password="{S}"/>',
    f'<property name="password" value="{S}"/>',
    f'<entry key="api_key">{S}</entry>',
    f"<secret><inner>{S}</inner></secret>",
    f"&lt;password&gt;{S}&lt;/password&gt;",
    f"<password>{S}",
    # keys, certificates, tokens that are known by their form
    f"-----BEGIN RSA PRIVATE KEY-----\nMII{S}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\nMII{S}",
    # words
    f"the password is '{S}'",
    f'wrong password "{S}" for ann',
    f"password {S} is wrong",
    f"the token was {S}, and is no more",
    f"invalid api key {S}",
    f"no account for pin '{S}'",
    f"login of ann with password '{S}' failed",
]


@pytest.mark.parametrize("text", FORMS)
def test_a_secret_is_masked_in_every_form_that_shows_what_it_is(text: str) -> None:
    masked = MASKING.masked_text(text)
    assert S not in masked, masked
    assert "***" in masked


@pytest.mark.parametrize(
    "form", ["eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "sk_live_51abc", "ghp_abcdefghijklmnop1234", "AKIAIOSFODNN7EXAMPLE"]
)
def test_a_secret_that_is_known_by_its_form_needs_no_key(form: str) -> None:
    assert form not in MASKING.masked_text(f"upstream said no to {form} today")
    assert form not in MASKING.masked_text(form)


@pytest.mark.parametrize(
    "text",
    [
        "order 7 of ann is gone",
        "timeout: 5 s",
        "total=3, shipping: 4",
        "KeyError: 'sku'",
        "asyncpg.exceptions.UniqueViolationError: Key (id)=(7) already exists.",
        "HTTPStatusError: Client error '404 Not Found' for url 'https://example.com/orders/7'",
        'Traceback (most recent call last):\n  File "/app/orders.py", line 12, in place\n    raise SoldOut\nSoldOut: book',
        "the password is too short",
        "token expired",
        "Invalid token in line 7",
        "<order><id>7</id></order>",
        "[('sku', 'book'), ('quantity', 3)]",
        "{'name': 'colour', 'value': 'red'}",
        "connection to db:5432 refused",
    ],
)
def test_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert MASKING.masked_text(text) == text


@given(text=st.text(alphabet=st.sampled_from("password: ='\"\\[](){}<>&;\n\tKey Authorization-x1"), max_size=300))
def test_any_text_can_be_masked_and_masking_it_again_changes_nothing_that_matters(text: str) -> None:
    MASKING.masked_text(text)


def test_masking_a_long_text_takes_time_in_proportion_to_its_length() -> None:
    for part in ("password: '", "a='", "<password", "{'name': ", "[((", '\\"', "loc ", "Key (a)=(", "word word word "):
        MASKING.masked_text(part * (40_000 // len(part)))


secrets = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=6, max_size=60).filter(
    lambda secret: not secret.isdecimal() and secret.strip() == secret
)


@given(secret=secrets, before=st.text(max_size=20), after=st.text(max_size=20))
def test_secrets_of_the_message_are_found_in_any_text(secret: str, before: str, after: str) -> None:
    body = json.dumps({"customer": {"api_key": secret}}).encode()
    masking = MASKING.of_message(body)
    for form in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret)):
        assert form not in masking.masked_text(f"{before} {form} {after}")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (json.dumps({"tokens": ["x9-first", {"deep": S}]}).encode(), {}),
        (json.dumps({"inner": json.dumps({"password": S})}).encode(), {}),
        (b"{}", {"x-api-key": S}),
        (b"{}", {"nested": {"Authorization": S}}),
        (f"user=ann&password={S}".encode(), {}),
        (f"<user><password>{S}</password></user>".encode(), {}),
        (json.dumps({"fields": [{"name": "password", "value": S}]}).encode(), {}),
    ],
)
def test_secrets_are_collected_from_body_and_headers_of_every_kind(body: bytes, headers: dict[str, object]) -> None:
    assert MASKING.of_message(body, headers).masked_text(f"ann said {S}!") == "ann said ***!"


def test_a_card_number_is_found_however_its_digits_are_grouped() -> None:
    masking = MASKING.of_message(b'{"card_number": 4111111111111111}')
    assert masking.masked_text("declined 4111 1111 1111 1111 and 4111-1111-1111-1111") == "declined *** and ***"


def test_short_values_are_found_only_as_whole_words() -> None:
    masking = MASKING.of_message(b'{"cvv": 123, "pin": "7", "otp": "ab"}')
    assert (
        masking.masked_text("line 1234: 123 was wrong, table 7, ab, about") == "line 1234: *** was wrong, table 7, ***, about"
    )


def test_the_beginning_of_a_secret_at_the_end_of_a_text_that_was_cut_is_masked() -> None:
    secret = "correct-horse-battery-staple"
    masking = MASKING.of_message(json.dumps({"secret": secret}).encode())
    assert masking.masked_text(f"refused {secret[:15]}") == "refused ***"
    assert masking.masked_text(f"refused {secret[:15]}…") == "refused ***…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("card 4111 1111 1111 1111 2 declined", "card *** 2 declined"),
        ("x4111-1111-1111-1111.", "x***."),
        ("1 4111 1111 1111 1111", "1 ***"),
        ("4111111111111111 4111 1111 1111 1111", "*** ***"),
        ("41111111111111112", "41111111111111112"),
        ("pin 1234, 12345 and a1234", "pin ***, 12345 and a1234"),
    ],
)
def test_a_number_is_found_in_groups_of_digits_and_not_inside_of_another(text: str, shown: str) -> None:
    of_message = Masking().of_message(b'{"card_number": "4111111111111111", "pin": 1234}')
    assert of_message.masked_text(text) == shown


@pytest.mark.parametrize("secret", ["\ud800abcdefgh", "abcdefgh\udfff", "\udcffabc-defgh"])
def test_half_a_surrogate_pair_in_a_secret_is_found_too(secret: str) -> None:
    of_message = Masking().of_message(json.dumps({"token": secret}).encode(), {"x-api-key": secret})
    assert of_message.masked_text(f"refused {secret}, {json.dumps(secret)}") == 'refused ***, "***"'
    stored = secret.encode(errors="replace").decode()  # as what is kept in RabbitMQ
    assert of_message.masked_text(f"refused {stored}") == "refused ***"


def test_errors_are_hidden_where_a_messages_secrets_cannot_be_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(secret: str) -> None:
        raise LookupError

    monkeypatch.setattr("outbox.masking.text._notations", broken)
    of_message = Masking().of_message(b'{"token": "abcdefgh"}')
    assert of_message.failure(Failure("ValueError", "refused abcdefgh", "")) == Failure("ValueError", HIDDEN, "")
    assert "errors are hidden" in caplog.text


def test_what_postgresql_says_about_a_wrong_password_is_shown() -> None:
    error = asyncpg.InvalidPasswordError('password authentication failed for user "ada"')
    text = f"lost the database, trying again: looking at outbox_table: {reason_of(error)}"
    assert Masking().masked_text(text) == text
