"""How roles log: one line an event, JSON where nobody watches."""

from __future__ import annotations

import logging
import sys

import structlog

from schemas.settings import Settings


def configure_logging(role: str, settings: Settings) -> None:
    """Log to standard error from now on, and say by which settings the role runs, secrets hidden."""
    level = getattr(logging, settings.log_level.upper())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # Libraries only when something is wrong: kafka-python tells every reconnection.
    logging.basicConfig(
        stream=sys.stderr, level=max(level, logging.WARNING), format="%(name)s %(levelname)s %(message)s"
    )
    logging.getLogger("kafka").setLevel(logging.ERROR)
    structlog.get_logger(role).info("starting", role=role, **settings.shown())
