"""Packing: the one integer that orders a board, and the only place that knows its bits.

    packed = v * 2^tick_bits + (2^tick_bits - 1 - tick)

`v` is how far the score is from the worst one, `tick` how long after the window's origin the
score was reached, counted in the window's resolution. A greater packed value is ahead: better
score first, then whoever got there first. It is below 2^53, because a Redis score is a double
(https://redis.io/docs/latest/develop/data-types/sorted-sets/) and a double holds integers exactly
up to there. The same integer is the condition in DynamoDB and the score in ZADD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

Order = Literal["higher", "lower"]

MAX_SAFE_INTEGER = 2**53 - 1
PACKED_BITS = 53
RESOLUTIONS_MS = (
    1, 10, 100, SECOND_MS, 10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, DAY_MS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Codec:
    """Packs (score, instant) of one window into an integer in 0..2^53-1, and back.

    `resolution_ms` is None where the score takes all bits: then `tick_bits` is 0 and ties are not
    decided by time.
    """

    order: Order
    min_score: int
    max_score: int
    origin_at: int
    resolution_ms: int | None
    tick_bits: int

    def pack(self, score: int, at_ms: int) -> int:
        """The packed value. The caller has checked the score's bounds and the window; see ValueError."""
        value = score - self.min_score if self.order == "higher" else self.max_score - score
        tick = 0 if self.resolution_ms is None else (at_ms - self.origin_at) // self.resolution_ms
        ticks = 1 << self.tick_bits
        if not 0 <= value <= self.max_score - self.min_score or not 0 <= tick < ticks:
            raise ValueError(f"score {score} at {at_ms} is outside of what this window can hold")
        return value * ticks + (ticks - 1 - tick)

    def score(self, packed: int) -> int:
        """The score in a packed value."""
        value = packed >> self.tick_bits
        return self.min_score + value if self.order == "higher" else self.max_score - value

    def achieved_at(self, packed: int) -> int | None:
        """When the score was reached, cut to the tick; None where the packed value has no time."""
        if self.resolution_ms is None:
            return None
        ticks = 1 << self.tick_bits
        return self.origin_at + (ticks - 1 - (packed & (ticks - 1))) * self.resolution_ms


def choose_codec(order: Order, min_score: int, max_score: int, origin_at: int, span_ms: int) -> Codec:
    """The codec with the finest resolution whose ticks over the whole span fit beside the score.

    Raises ValueError where not even the score fits: bounds further apart than 2^53-1.
    """
    widest = max_score - min_score
    if not 0 <= widest <= MAX_SAFE_INTEGER:
        raise ValueError("max - min is at most 2^53-1 and max is not below min")
    room = PACKED_BITS - widest.bit_length()
    for resolution_ms in RESOLUTIONS_MS:
        ticks = -(-span_ms // resolution_ms)
        tick_bits = (ticks - 1).bit_length()
        if 0 < tick_bits <= room:
            return Codec(order, min_score, max_score, origin_at, resolution_ms, tick_bits)
    return Codec(order, min_score, max_score, origin_at, None, 0)
