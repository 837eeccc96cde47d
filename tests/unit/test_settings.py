from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from schemas.settings import Settings, load_settings, parse_submit_keys

DIGEST = "0123456789abcdef" * 4


def fields_refused(environment: dict[str, str]) -> set[str]:
    with pytest.raises(ValidationError) as caught:
        load_settings(environment)
    return {str(one["loc"][0]) for one in caught.value.errors()}


def test_nothing_has_to_be_set() -> None:
    settings = load_settings({})
    assert settings.redis_url.get_secret_value() == "redis://127.0.0.1:6379/0"
    assert (settings.kafka, settings.dynamodb_url) == ("127.0.0.1:9092", None)
    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert settings.serve == frozenset({"read", "submit"})
    assert settings.names.scores == "lb-scores"
    assert parse_submit_keys(settings.submit_keys.get_secret_value()) == []


def test_every_setting_is_read_from_its_variable() -> None:
    settings = load_settings(
        {
            "STANDINGS_PREFIX": "staging-2",
            "STANDINGS_REDIS_URL": "redis://:secret@redis:6379/1",
            "STANDINGS_REDIS_CLUSTER": "true",
            "STANDINGS_KAFKA": "a:9092,b:9092",
            "STANDINGS_SERVE": "read",
            "STANDINGS_PORT": "9000",
            "STANDINGS_DATA": "/srv/standings",
            "STANDINGS_MAX_DEAD_LETTER_SHARE": "0.5",
            "STANDINGS_KAFKA_CA_FILE": "/etc/ca.pem",
            "STANDINGS_UNHEARD_OF": "1",
            "PORT": "1",
        }
    )
    assert settings.names.lane(3).meta == "staging-2:{3}:meta"
    assert settings.redis_url.get_secret_value() == "redis://:secret@redis:6379/1"
    assert settings.redis_cluster
    assert (settings.kafka, settings.port) == ("a:9092,b:9092", 9000)
    assert settings.serve == frozenset({"read"})
    assert (settings.data, settings.max_dead_letter_share) == (Path("/srv/standings"), 0.5)
    assert settings.kafka_ca_file == Path("/etc/ca.pem")  # a path, and not a file that holds a setting


def test_an_environment_that_is_given_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDINGS_PORT", "9000")
    assert load_settings({}).port == 8080
    assert load_settings().port == 9000


def test_a_setting_may_come_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "redis_url"
    secret.write_text("redis://:from-a-file@redis:6379/0\n", encoding="utf-8")
    keys = tmp_path / "keys"
    keys.write_text(f"game:{DIGEST}\nother:{DIGEST}:ranked\n", encoding="utf-8")
    settings = load_settings(
        {
            "STANDINGS_REDIS_URL_FILE": str(secret),
            "STANDINGS_REDIS_URL": "redis://overruled:1/0",
            "STANDINGS_SUBMIT_KEYS_FILE": str(keys),
            "STANDINGS_PORT_FILE": "",
            "STANDINGS_PORT": "9000",
        }
    )
    assert settings.redis_url.get_secret_value() == "redis://:from-a-file@redis:6379/0"
    assert [key.name for key in parse_submit_keys(settings.submit_keys.get_secret_value())] == ["game", "other"]
    assert settings.port == 9000


def test_a_file_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        load_settings({"STANDINGS_KAFKA_PASSWORD_FILE": str(tmp_path / "absent")})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prefix", "LB"), ("prefix", "a_b"), ("prefix", "lb\n"), ("prefix", "x" * 33),
        ("prefix", "-lb"), ("prefix", "{lb}"), ("redis_cluster", "perhaps"), ("redis_timeout_s", "0"),
        ("redis_timeout_s", "nan"), ("redis_timeout_s", "inf"), ("port", "0"), ("port", "65536"),
        ("port", "http"), ("port", "\uff18\uff10"), ("port", "80.5"), ("workers", "0"), ("serve", ","),
        ("serve", "read,write"), ("serve", "Read"), ("kafka_security_protocol", "TLS"),
        ("kafka_session_timeout_ms", "10"), ("batch_rows", "-1"),
        ("deadline_ms", "999"), ("clock_skew_ms", "-1"), ("max_dead_letter_share", "1.1"),
        ("max_dead_letter_share", "nan"), ("log_level", "loud"), ("submit_keys", "game"),
    ],
)  # fmt: skip
def test_a_bad_value_is_told_by_the_name_of_its_field(field: str, value: str) -> None:
    assert fields_refused({f"STANDINGS_{field.upper()}": value}) == {field}


def test_all_bad_values_are_told_at_once() -> None:
    assert fields_refused({"STANDINGS_PORT": "0", "STANDINGS_SERVE": "write", "STANDINGS_PREFIX": "A"}) == {
        "port",
        "serve",
        "prefix",
    }


def test_roles_may_stand_with_spaces_and_in_any_order() -> None:
    assert load_settings({"STANDINGS_SERVE": " submit , read,"}).serve == {"read", "submit"}


def test_settings_do_not_change_once_read() -> None:
    settings = load_settings({})
    with pytest.raises(ValidationError, match="frozen"):
        settings.port = 1  # type: ignore[misc]


def test_secrets_are_hidden_wherever_settings_are_shown() -> None:
    settings = load_settings(
        {
            "STANDINGS_REDIS_URL": "redis://:s3cret@redis:6379/0",
            "STANDINGS_KAFKA_PASSWORD": "s3cret",
            "STANDINGS_SUBMIT_KEYS": f"s3cret:{DIGEST}",
            "STANDINGS_PORT": "9000",
        }
    )
    shown = settings.shown()
    assert set(shown) == set(Settings.model_fields)
    assert shown["port"] == "9000"
    for text in (str(shown), repr(settings), str(settings)):
        assert "s3cret" not in text
        assert DIGEST not in text


def test_a_bad_secret_is_not_repeated_in_the_error() -> None:
    for bad in ("s3cret", f"game:{DIGEST}s3cret", f"s3cret:{DIGEST}:all"):
        with pytest.raises(ValidationError) as caught:
            load_settings({"STANDINGS_SUBMIT_KEYS": bad})
        assert "submit_keys" in str(caught.value)
        assert "s3cret" not in str(caught.value)
        assert DIGEST not in str(caught.value)


def test_submit_keys_are_a_name_a_digest_and_maybe_leaderboards() -> None:
    text = f"  game:{DIGEST}\n\tCup.2026_a-b:{DIGEST[::-1]}:ranked,cup-2026  "
    game, cup = parse_submit_keys(text)
    assert (game.name, game.digest, game.leaderboards) == ("game", bytes.fromhex(DIGEST), None)
    assert (cup.name, cup.digest) == ("Cup.2026_a-b", bytes.fromhex(DIGEST[::-1]))
    assert cup.leaderboards == frozenset({"ranked", "cup-2026"})
    assert game.may_write("anything")
    assert cup.may_write("ranked")
    assert not cup.may_write("ranked-2")
    assert not cup.may_write("main")


@pytest.mark.parametrize(
    "entry",
    [
        "game", "game:", f":{DIGEST}", f"game:{DIGEST[1:]}", f"game:{DIGEST}0", f"game:{DIGEST.upper()}",
        f"game:{DIGEST}:", f"game:{DIGEST}:a,", f"game:{DIGEST}:,a", f"game:{DIGEST}:A", f"game:{DIGEST}:-a",
        f"game:{DIGEST}:weekly", f"game:{DIGEST}:a:b", f"g\u00e4me:{DIGEST}", f"game:{DIGEST[:-1]}\u0660",
        f"{'x' * 65}:{DIGEST}", f"game={DIGEST}",
    ],
)  # fmt: skip
def test_a_malformed_submit_key_is_told_by_its_number(entry: str) -> None:
    with pytest.raises(ValueError, match="entry 2 of the submit keys") as caught:
        parse_submit_keys(f"game:{DIGEST} {entry} game:{DIGEST}")
    assert DIGEST[:16] not in str(caught.value)


def test_an_empty_variable_counts_as_unset() -> None:
    empty = {"STANDINGS_PORT": "", "STANDINGS_DYNAMODB_URL": "", "STANDINGS_SERVE": ""}
    assert load_settings(empty) == load_settings({})
