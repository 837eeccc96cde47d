"""The ASGI app: which path leads to which handler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import Route, Router

from api.batches import Batches
from api.definitions import Definitions
from api.docs import Docs
from api.endpoints import Endpoint, Handler, NotFound, RawPaths
from api.friends import Friends
from api.health import Exposition, Health
from api.live import Live
from api.lookups import Lookups
from api.openapi import OpenApi
from api.page import Page
from api.players import Players
from api.reads import Reads
from api.receipts import Receipts
from api.scores import Scores
from api.services import Services
from api.standings import Standings
from api.submits import Acceptance, Submits
from api.waiter import Waiter


def create_app(services: Services) -> RawPaths:
    """The app over these services, with the route sets that the settings name. Its lifespan starts and closes them."""
    serves = services.settings.serve
    routes = _service_routes(services)
    if "read" in serves:
        routes = _read_routes(services) + _page_routes(services) + routes
    if "submit" in serves:
        routes = _submit_routes(services) + routes

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        del app
        await services.start()
        try:
            yield
        finally:
            await services.close()

    # A bare router: what Starlette's own application adds (errors, middleware) is in the endpoints.
    router = Router(routes, redirect_slashes=False, default=NotFound(services.metrics), lifespan=lifespan)
    return RawPaths(router)


def _read_routes(services: Services) -> list[Route]:
    lookups = Lookups(services.registry, services.clock)
    waiter = Waiter(services.reader)
    scores = Scores(services.scorebook, services.scorebook_threads)
    reads = Reads(lookups, services.reader, waiter, scores)
    friends = Friends(lookups, services.reader, waiter, scores)
    players = Players(lookups, services.reader, waiter, scores)
    definitions = Definitions(lookups)
    live = Live(lookups, services.reader, services.feeds)
    paths: dict[str, dict[str, Handler]] = {
        "/v1/boards/{board}/players/{player_id}": {"GET": reads.player},
        "/v1/boards/{board}/top": {"GET": reads.top},
        "/v1/boards/{board}/live": {"GET": live.stream},
        "/v1/boards/{board}/players/{player_id}/around": {"GET": reads.around},
        "/v1/boards/{board}/player": {"GET": reads.player_by_id},
        "/v1/boards/{board}/around": {"GET": reads.around_by_id},
        "/v1/boards/{board}/friends": {"GET": friends.ask, "POST": friends.post},
        "/v1/boards/{board}": {"GET": reads.board},
        "/v1/players/{player_id}/boards": {"GET": players.boards},
        "/v1/leaderboards": {"GET": definitions.list_all},
        "/v1/leaderboards/{leaderboard}": {"GET": definitions.show},
    }
    return [Route(path, Endpoint(path, methods, services.metrics, public=True)) for path, methods in paths.items()]


def _page_routes(services: Services) -> list[Route]:
    page = Page()
    paths = {"/": {"GET": page.index}, "/page/{name}": {"GET": page.file}}
    return [Route(path, Endpoint(path, methods, services.metrics, public=False)) for path, methods in paths.items()]


def _submit_routes(services: Services) -> list[Route]:
    lookups = Lookups(services.registry, services.clock)
    scores = Scores(services.scorebook, services.scorebook_threads)
    acceptance = Acceptance(lookups, services.log, services.outbox, services.metrics)
    standings = Standings(services.reader, Waiter(services.reader), scores, services.clock)
    submits = Submits(services.keyring, lookups, acceptance, standings)
    batches = Batches(services.keyring, lookups, acceptance)
    receipts = Receipts(services.keyring, lookups, scores)
    paths = {
        "/v1/scores": {"POST": submits.score},
        "/v1/matches": {"POST": submits.match},
        "/v1/matches:batch": {"POST": batches.submit},
        "/v1/leaderboards/{leaderboard}/matches/{match_id}": {"GET": receipts.show},
    }
    return [Route(path, Endpoint(path, methods, services.metrics, public=False)) for path, methods in paths.items()]


def _service_routes(services: Services) -> list[Route]:
    health = Health(
        services.settings.serve,
        services.registry,
        services.reader,
        services.scorebook,
        services.lanes,
        services.log,
        services.watch_threads,
    )
    docs = Docs()
    paths: dict[str, dict[str, Handler]] = {
        "/livez": {"GET": health.livez},
        "/readyz": {"GET": health.readyz},
        "/metrics": {"GET": Exposition(services.metrics).show},
        "/docs": {"GET": docs.index},
        "/docs/{name}": {"GET": docs.file},
    }
    routes = [Route(path, Endpoint(path, methods, services.metrics, public=False)) for path, methods in paths.items()]
    description = {"GET": OpenApi(services.settings.serve).show}
    return [*routes, Route("/openapi.json", Endpoint("/openapi.json", description, services.metrics, public=True))]
