"""Many schedules from the command line: python -m tests.faults.run --seeds 20 | --seed 7. The summary is JSON."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.runs import Outcome, Runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, action="append", help="play this one; may be repeated")
    parser.add_argument("--seeds", type=int, default=10, help="how many, drawn at random")
    parser.add_argument("--broker", choices=["embedded", "kafka"], default="embedded")
    options = parser.parse_args()
    seeds = options.seed or [random.SystemRandom().randrange(10**6) for _ in range(options.seeds)]
    outcomes: list[Outcome] = []
    began_s = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="standings-faults-"))
    runs = Runs(folder, options.broker)
    try:
        for seed in seeds:
            outcomes.append(runs.play(seed))
            _tell(json.dumps(outcomes[-1].as_json()))
    finally:
        runs.end()
        if any(one.verdict.faults for one in outcomes):
            _tell(f"logs: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    _tell(json.dumps(summarize(outcomes, time.monotonic() - began_s), indent=1))
    return 1 if any(one.verdict.faults for one in outcomes) else 0


def summarize(outcomes: list[Outcome], took_s: float) -> dict[str, object]:
    """All schedules together."""
    heals = sorted(one.healed_s for one in outcomes)
    verdicts = [one.verdict for one in outcomes]
    reads: Counter[str] = Counter()
    injected: Counter[str] = Counter()
    for one in outcomes:
        reads.update(one.verdict.reads)
        injected.update(one.conductor.injected)
    return {
        "schedules": len(outcomes),
        "faults": sum(injected.values()),
        "faults_by_kind": dict(sorted(injected.items())),
        "accepted": sum(one.accepted for one in verdicts),
        "results": sum(one.results for one in verdicts),
        "lost": sum(one.lost for one in verdicts),
        "reads": dict(sorted(reads.items())),
        "wrong_reads": sum(one.wrong_reads for one in verdicts),
        "audit_alarms": sum(one.audit_alarms for one in verdicts),
        "heal_s": {
            "median": round(heals[len(heals) // 2], 2), "p90": round(heals[int(len(heals) * 0.9)], 2),
            "longest": round(heals[-1], 2),
        } if heals else {},
        "took_s": round(took_s, 1),
        "failed_seeds": [one.seed for one in outcomes if one.verdict.faults],
    }  # fmt: skip


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
