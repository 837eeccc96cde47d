"""Dead letters: durable before anything is committed, untouched, and not the end of everything by a bad deploy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from stores.log import Acknowledged, LogUnavailable, Record, RecordTooLarge
from tests.fakes.deployment import START_AT, Deployment, header
from tests.updater.events import fetched, score
from updater.batch import DeadLetter, Decoded
from updater.dead_letters import DeadLetters, TooManyDeadLetters


def record(offset: int = 5, *, key: bytes | None = b"m", value: bytes | None = b"\xff\x00{") -> Record:
    return Record(3, offset, START_AT, True, key, value)


def letter(one: Record | None = None, detail: str = "no JSON") -> DeadLetter:
    return DeadLetter(one or record(), "invalid-json", detail)


def sender(deployment: Deployment, share: float = 0.9) -> DeadLetters:
    return DeadLetters(deployment.log.producer(), deployment.settings.names, share)


def test_a_dead_letter_is_the_record_untouched_with_where_from_and_why(deployment: Deployment) -> None:
    sender(deployment).send([letter()])
    (kept,) = deployment.letters()
    assert (kept.key, kept.value) == (b"m", b"\xff\x00{")
    assert dict(kept.headers) == {
        "standings-reason": b"invalid-json",
        "standings-detail": b"no JSON",
        "standings-topic": f"{deployment.settings.prefix}-match-events".encode(),
        "standings-partition": b"3",
        "standings-offset": b"5",
        "standings-timestamp": str(START_AT).encode(),
    }


def test_a_record_without_key_or_value_is_kept_too(deployment: Deployment) -> None:
    sender(deployment).send([letter(record(key=None, value=None))])
    assert [(kept.key, kept.value) for kept in deployment.letters()] == [(None, b"")]


def test_a_detail_is_cut_and_always_encodable(deployment: Deployment) -> None:
    sender(deployment).send([letter(detail="\ud800" + "x" * 5_000)])
    assert header(deployment.letters()[0], "standings-detail") == "?" + "x" * 1_999


def test_sending_waits_until_all_are_durable(deployment: Deployment) -> None:
    asked: list[float | None] = []

    class Delivery(Future[Acknowledged]):
        def result(self, timeout: float | None = None) -> Acknowledged:
            asked.append(timeout)
            return super().result(timeout)

    class Producer:
        def send(self, *_: Any, **__: Any) -> Future[Acknowledged]:
            delivery = Delivery()
            delivery.set_result(Acknowledged(0, 0, 0))
            return delivery

        def close(self) -> None:
            """Nothing is open."""

    DeadLetters(Producer(), deployment.settings.names, 0.9).send([letter(), letter()])
    assert asked == [12.0, 12.0]


def test_what_was_not_acknowledged_is_an_outage(deployment: Deployment) -> None:
    deployment.log.lose_acknowledgements()
    with pytest.raises(LogUnavailable):
        sender(deployment).send([letter(), letter()])


def test_an_acknowledgement_that_never_comes_is_an_outage(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("updater.dead_letters.DELIVERY_TIMEOUT_S", 0.01)
    deployment.log.hold_acknowledgements()
    with pytest.raises(LogUnavailable, match="in time"):
        sender(deployment).send([letter()])


def test_the_updater_dead_letters_what_it_was_given_and_goes_on(deployment: Deployment) -> None:
    deployment.append(b"m", b"\xff\x00")
    deployment.submit(score("m", 3))
    deployment.submit(score("m", 4))
    process = deployment.updater()
    process.turns(4)
    assert [(kept.key, kept.value, header(kept, "standings-reason")) for kept in deployment.letters()] == [
        (b"m", b"\xff\x00", "invalid-json"),
        (b"m", fetched(deployment)[2].value, "match-conflict"),
    ]
    assert sum(deployment.committed().values()) == 3


# ---------------------------------------------------------------------- a bad deploy


def dead(count: int, first: int = 0) -> list[Decoded]:
    return [Decoded(record(first + one), letter(record(first + one))) for one in range(count)]


def sound(count: int, first: int = 0) -> list[Decoded]:
    return [Decoded(record(first + one), None) for one in range(count)]  # type: ignore[arg-type]


def test_few_dead_letters_stop_nothing_even_if_they_are_all(deployment: Deployment) -> None:
    sender(deployment).weigh(dead(99))


def test_nearly_all_of_many_being_dead_stops_the_updater(deployment: Deployment) -> None:
    with pytest.raises(TooManyDeadLetters, match=r"95 of the last 100.*STANDINGS_MAX_DEAD_LETTER_SHARE"):
        sender(deployment).weigh(sound(5) + dead(95, 5))


def test_exactly_the_allowed_share_is_allowed(deployment: Deployment) -> None:
    sender(deployment).weigh(sound(10) + dead(90, 10))


def test_a_share_of_one_lets_everything_go(deployment: Deployment) -> None:
    sender(deployment, 1).weigh(dead(1_000))


def test_only_the_last_thousand_count(deployment: Deployment) -> None:
    letters = sender(deployment)
    letters.weigh(sound(5_000))
    letters.weigh(dead(900, 5_000))
    with pytest.raises(TooManyDeadLetters):
        letters.weigh(dead(1, 5_900))


def test_a_record_that_is_fetched_again_and_again_counts_once(deployment: Deployment) -> None:
    letters = sender(deployment)
    for _ in range(200):
        letters.weigh(dead(3))


def test_a_bad_deploy_drops_nothing(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1)
    for number in range(150):
        deployment.submit(score("m", -1, f"p{number}"))
    process = deployment.updater()
    process.turn()
    with pytest.raises(TooManyDeadLetters):
        process.turn()
    assert (deployment.letters(), deployment.committed(), deployment.rows()) == ([], {}, {})


def test_an_outage_of_the_dead_letters_stops_no_updater_for_good(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1)
    deployment.append(b"m", b"{")
    deployment.log.lose_acknowledgements(120)
    process = deployment.updater()
    process.turns(4_500)
    assert deployment.committed() == {0: 1}


@pytest.mark.parametrize("when", ["at once", "by the broker"])
def test_of_a_record_that_is_too_large_the_beginning_is_kept_and_nothing_stops(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    producer = deployment.log.producer()
    send = producer.send

    def bounded(topic: str, key: bytes | None, value: bytes, **more: Any) -> Future[Acknowledged]:
        if len(value) <= 1_000_000:
            return send(topic, key, value, **more)
        if when == "at once":
            raise RecordTooLarge("too large")
        refused: Future[Acknowledged] = Future()
        refused.set_exception(RecordTooLarge("too large"))
        return refused

    monkeypatch.setattr(producer, "send", bounded)
    value = b"x" * 3_000_000
    letters = [letter(record(5, key=b"k" * 5_000, value=value)), letter(record(6))]
    DeadLetters(producer, deployment.settings.names, 0.9).send(letters)
    small, large = sorted(deployment.letters(), key=lambda kept: len(kept.value or b""))
    assert small.value == b"\xff\x00{"
    assert large.value == value[: 64 * 1_024]
    assert large.key == b"k" * 1_024
    assert header(large, "standings-size") == "3000000"
    assert header(large, "standings-sha256") == hashlib.sha256(value).hexdigest()
    assert header(large, "standings-offset") == "5"
