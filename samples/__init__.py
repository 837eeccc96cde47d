"""Ready-made data sets that ship with Standings: leaderboards to apply and matches to submit."""

from pathlib import Path

__all__ = ["path"]


def path(name: str) -> Path:
    """Return the folder of a sample, which holds ``leaderboards.toml`` and ``matches.ndjson``.

    Raises ``LookupError``, whose message lists the samples that exist, for any other name.
    """
    here = Path(__file__).parent
    names = sorted(found.parent.name for found in here.glob("*/leaderboards.toml"))
    if name not in names:
        raise LookupError(f"no sample named {name!r}; there is: {', '.join(names)}")
    return here / name
