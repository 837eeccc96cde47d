"""`standings …`: every command, with its options. What they do is in commands/ and in the roles."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from commands.output import console, fail, page_table, print_json, print_reply, progress_bar, table
from schemas.errors import StandingsError
from schemas.events import faults_of
from schemas.settings import PREFIX, Settings, load_settings

Data = Annotated[Path | None, typer.Option(help="Data folder of a stack on this machine. [STANDINGS_DATA]")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="Its port; default: a free one.")]

BoardOption = Annotated[str | None, typer.Option(help="One board, such as ranked:weekly.")]
Everything = Annotated[bool, typer.Option("--all", help="All boards.")]

app = typer.Typer(
    name="standings", help="Leaderboards for games.", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
key_app = typer.Typer(help="Submit keys.", no_args_is_help=True)
dlq_app = typer.Typer(help="Dead letters: records that could not be applied.", no_args_is_help=True)
app.add_typer(key_app, name="key")
app.add_typer(dlq_app, name="dlq")


@app.command()
def up(
    data: Annotated[Path | None, typer.Option(help="Where its data is. [STANDINGS_DATA, or .standings]")] = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, envvar=f"{PREFIX}PORT", help="The API's port.")] = 8080,
    sample: Annotated[str | None, typer.Option(help="A sample to feed, such as football; then a live game.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin without the data of earlier runs.")] = False,
    redis_port: Port = None,
    kafka_port: Port = None,
    dynamodb_port: Port = None,
) -> None:
    """Run the whole stack on this machine, in the foreground."""
    from commands.stack import run_stack
    from commands.target import DEFAULT_DATA
    from embedded.up import UpOptions
    from samples import path as sample_path

    if sample is not None:
        try:
            sample_path(sample)
        except LookupError as error:
            raise StandingsError(str(error)) from None
    folder = data or Path(os.environ.get(f"{PREFIX}DATA") or DEFAULT_DATA)
    options = UpOptions(folder, port, redis_port, kafka_port, dynamodb_port, fresh=fresh)
    raise typer.Exit(run_stack(options, sample))


@app.command()
def init(
    lanes: Annotated[int | None, typer.Option(min=1, max=1024, help="How many lanes; a new deployment has 4.")] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Partitions; more than now adds some.")
    ] = None,
    replication: Annotated[int, typer.Option(min=-1, help="Copies of a new topic; -1: the brokers' default.")] = -1,
    new_truth: Annotated[
        bool, typer.Option("--new-truth", help="DynamoDB was restored to an earlier point: begin a new truth.")
    ] = False,
    data: Data = None,
) -> None:
    """Create tables, topics and the layout of lanes. Safe to repeat; --lanes on an existing layout changes it."""
    from commands.administer import init as run_init
    from commands.target import find_target

    for line in run_init(find_target(data).settings(), lanes, partitions, replication, new_truth=new_truth):
        typer.echo(line)


@app.command()
def apply(
    file: Annotated[Path, typer.Argument(help="A leaderboards.toml.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan only.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Create or update leaderboards: all of the file, or nothing."""
    from commands.administer import apply as run_apply
    from commands.administer import read_definitions
    from commands.target import find_target

    definitions = read_definitions(file)
    planned = run_apply(find_target(data).settings(), definitions, dry_run=dry_run)
    rows = [
        {
            "leaderboard": one.leaderboard.name,
            "action": one.action,
            "shards": one.leaderboard.definition.shards,
            "tie_resolution_ms": one.leaderboard.tie_resolution_ms,
            "notes": list(one.notes),
        }
        for one in planned
    ]
    if as_json:
        print_json({"dry_run": dry_run, "leaderboards": rows})
        return
    shown = [
        (
            one["leaderboard"],
            one["action"],
            ", ".join(f"{k} {v or 'none'}" for k, v in p.leaderboard.tie_resolution_ms.items()),
            "; ".join(p.notes),
        )
        for one, p in zip(rows, planned, strict=True)
    ]
    console().print(table("plan" if dry_run else "applied", ("leaderboard", "action", "ties, ms", "notes"), shown))


@app.command()
def api() -> None:
    """Run the API alone. Settings: docs/settings.md."""
    from api.server import serve

    serve(_role_settings("api"))


@app.command()
def updater() -> None:
    """Run an updater alone. Settings: docs/settings.md."""
    from updater.service import run_updater

    _run_role("updater", run_updater)


@app.command()
def keeper() -> None:
    """Run a keeper alone: it rebuilds lanes that can't be whole. Settings: docs/settings.md."""
    from rebuild.service import run_keeper

    _run_role("keeper", run_keeper)


@app.command()
def submit(
    file: Annotated[str, typer.Argument(help="NDJSON or CSV; - is standard input.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Submit matches (NDJSON, one a line) or scores (CSV: match_id,player_id,score[,leaderboard][,ended_at])."""
    from commands.http import open_client
    from commands.submit import open_text, read_lines, submit_lines
    from commands.target import find_target

    target = find_target(data)
    try:
        raw = sys.stdin.buffer if file == "-" else Path(file).open("rb")  # noqa: SIM115 - closed by the with below
    except OSError as error:
        raise StandingsError(f"{file} can't be read: {error.strerror}") from None
    with raw, open_client(target.url, target.key) as client, progress_bar("lines") as bar:
        task = bar.add_task("submitted", total=None)
        done = submit_lines(client, read_lines(open_text(raw), file), lambda lines: bar.advance(task, lines))
    for number, reason in done.refused:
        fail(f"line {number}: {reason}")
    if as_json:
        refused = [{"line": number, "reason": reason} for number, reason in done.refused]
        print_json({"accepted": done.accepted, "refused": refused, "position": done.position})
    else:
        typer.echo(f"{done.accepted} accepted, {len(done.refused)} refused")
    raise typer.Exit(1 if done.refused else 0)


@app.command()
def top(
    board: Annotated[str, typer.Argument(help="Such as ranked:weekly.")],
    n: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many.")] = 20,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show the top of a board."""
    from commands.http import open_client
    from commands.target import find_target

    target = find_target(data)
    with open_client(target.url, target.key) as client:
        page = client.top(board, n)
    if as_json:
        print_reply(page)
        return
    console().print(page_table(page))


@app.command()
def player(
    board: Annotated[str, typer.Argument(help="Such as ranked:weekly.")],
    player_id: Annotated[str, typer.Argument(metavar="ID")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show a player's rank and score on a board."""
    from commands.http import open_client
    from commands.target import find_target

    target = find_target(data)
    with open_client(target.url, target.key) as client:
        found = client.player(board, player_id)
    if as_json:
        print_reply(found)
        return
    row = [found.rank, found.player_id, found.score, found.achieved_at, found.top_percent]
    title = f"{found.board}  ·  {found.size} players  ·  as of {found.as_of or 'unknown'}"
    console().print(table(title, ("rank", "player", "score", "achieved", "top %"), [row]))


@app.command()
def status(data: Data = None, as_json: AsJson = False) -> None:
    """Show stores, lanes, lag and versions. Exit 1 when something is not well."""
    from commands.status import read_status
    from commands.target import find_target

    found = read_status(find_target(data).settings())
    if as_json:
        print_json(found.as_json())
    else:
        rows = [(part.part, part.state, part.detail) for part in found.parts]
        console().print(table("", ("part", "state", "detail"), rows))
        typer.echo(", ".join(f"{name} {number}" for name, number in found.versions.items()))
    raise typer.Exit(0 if found.ok else 1)


@app.command()
def rebuild(
    board: BoardOption = None,
    leaderboard: Annotated[str | None, typer.Option(help="All boards of a leaderboard.")] = None,
    lane: Annotated[int | None, typer.Option(min=0, help="A whole lane.")] = None,
    everything: Everything = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Be the keeper: heal whatever needs it, until stopped.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Bring boards back from the scorebook. A board of a ready lane is repaired in place, without downtime."""
    from commands.output import filling_bar, print_done
    from commands.recovery import Scope, open_rebuild
    from commands.recovery import rebuild as run_rebuild
    from commands.target import find_target

    scope = Scope(board, leaderboard, lane, everything)
    if watch == scope.is_one() or (watch and scope != Scope()):
        raise typer.BadParameter("give one of --board, --leaderboard, --lane, --all, or --watch alone")
    settings = find_target(data).settings()
    if watch:
        from rebuild.service import run_keeper

        run_until_stopped(lambda stopping: run_keeper(settings, stopping))
        return
    with filling_bar() as show, open_rebuild(settings, show) as service:
        done = run_rebuild(service, scope)
    print_done([asdict(one) for one in done], as_json=as_json)


@app.command()
def audit(
    board: BoardOption = None,
    everything: Everything = False,
    sample: Annotated[int | None, typer.Option(min=1, help="About so many entries of each board, at random.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Compare boards with the scorebook, entry by entry. Exit 1 on a difference; none is told while scores arrive."""
    from commands.output import print_audits
    from commands.recovery import Scope, open_rebuild
    from commands.recovery import audit as run_audit
    from commands.target import find_target

    scope = Scope(board, everything=everything)
    if not scope.is_one():
        raise typer.BadParameter("give one of --board and --all")
    with open_rebuild(find_target(data).settings()) as service:
        found = list(run_audit(service, scope, sample))
    print_audits(found, as_json=as_json)
    raise typer.Exit(1 if any(one.differing for one in found) else 0)


@key_app.command("new")
def key_new(
    name: Annotated[str, typer.Option(help="What the key is called in logs.")] = "game",
    leaderboards: Annotated[str, typer.Option(help="Limit it to these, separated by commas.")] = "",
) -> None:
    """Make a submit key: the key for the game, and its entry for STANDINGS_SUBMIT_KEYS."""
    from commands.keys import new_key
    from schemas.settings import parse_submit_keys

    key, entry = new_key(name, [one for one in leaderboards.split(",") if one])
    try:
        parse_submit_keys(entry)
    except ValueError as error:
        raise StandingsError(f"{name}, {leaderboards}: {error}") from None
    typer.echo(f"key:   {key}\nentry: {entry}")


@dlq_app.command("list")
def dlq_list(
    n: Annotated[int, typer.Option("-n", min=1, help="At most so many, the latest.")] = 100,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List the latest dead letters with their reasons."""
    from collections import deque

    from commands.target import find_target
    from stores.dead_letters import read_dead_letters

    letters = deque(read_dead_letters(find_target(data).settings()), maxlen=n)
    if as_json:
        shown = [
            asdict(one)
            | {"key": (one.key or b"").decode("utf-8", "replace"), "value": one.value.decode("utf-8", "replace")}
            for one in letters
        ]
        print_json(shown)
        return
    rows = (
        (f"{one.partition}@{one.offset}", one.reason, (one.key or b"").decode("utf-8", "replace"), one.detail)
        for one in letters
    )
    console().print(table(f"{len(letters)} dead letters", ("record", "reason", "match", "detail"), rows))


def _role_settings(role: str) -> Settings:
    from commands.logging import configure_logging

    settings = load_settings()
    configure_logging(role, settings)
    return settings


def _run_role(role: str, run: Callable[[Settings, threading.Event], None]) -> None:
    """Run a role until SIGTERM or SIGINT; it finishes what it is at first."""
    settings = _role_settings(role)
    run_until_stopped(lambda stopping: run(settings, stopping))


def run_until_stopped(run: Callable[[threading.Event], None]) -> None:
    """Run something that ends soon after its event was set, which SIGTERM and SIGINT do."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(stopping)


def main() -> None:
    """The entry point: errors are one line that says what to do. Exit 0 ok, 1 a failure, 2 usage."""
    try:
        app()
    except ValidationError as error:
        faults = "; ".join(f"{PREFIX}{one.place.lstrip('/').upper()}: {one.detail}" for one in faults_of(error))
        fail(f"a setting is wrong: {faults}")
        sys.exit(1)
    except (StandingsError, OSError) as error:
        fail(str(error))
        sys.exit(1)
    except UnicodeEncodeError:
        fail("an argument is not valid UTF-8")
        sys.exit(1)


if __name__ == "__main__":
    main()
