"""What a keeper counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter

if TYPE_CHECKING:
    from rebuild.keeper import Healed


class KeeperMetrics:
    """Counters of one keeper, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._healed = Counter(
            "standings_keeper_healed",
            "cures of lanes and of boards in place",
            ["what", "reason"],
            registry=self.registry,
        )
        self._rows = Counter("standings_keeper_rows", "rows brought back from the scorebook", registry=self.registry)
        self._failed = Counter(
            "standings_keeper_failed", "attempts that did not finish, by reason of the attempt", ["reason"],
            registry=self.registry,
        )  # fmt: skip

    def count_healed(self, healed: Healed) -> None:
        """Count a cure."""
        self._healed.labels("board" if healed.board else "lane", healed.reason).inc()
        self._rows.inc(healed.rows)

    def count_failed(self, _lane: int, reason: str) -> None:
        """Count an attempt that did not finish."""
        self._failed.labels(reason).inc()
