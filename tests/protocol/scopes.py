"""What is searched: scopes that must hold, and for each rule of the protocol one that breaks without it."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.world import Event, Scope

A, B, C = Event("a", 0, 5), Event("b", 1, 7), Event("c", 0, 6)
ONE = (((A,),),)
TWO = (((A, B),),)
THREE = (((A, B, C),),)
TURNED = (((B, A),),)
RAISED = (((A, C),),)
APART = (((A,), (C,)),)
REPEATED = (((A, C), (A,)),)
ADDED = (((A,), (C, B)),)
TWO_LOGS = (((A,),), ((C,),))
ANN = (("b0", "ann"),)
BOTH = (("b0", "ann"), ("b0", "bob"))
BOARDS = (("b0", "ann"), ("b1", "ann"))
BACK = {"keep": 1, "rollback": 1}

SOUND = (
    Scope("a lane lost, rolled back, its rebuild and its updater killed", TWO, BOTH,
          BACK | {"loss": 1, "crash": 1, "rebuild": 1}),
    Scope("two rebuilds at once", ONE, BOTH, BACK | {"loss": 1, "rebuild": 2}, cures=2),
    Scope("two rebuilds whose calls time out", ONE, ANN, {"loss": 1, "rebuild": 2, "timeout": 1}, cures=2),
    Scope("a lane never there", TWO, BOTH, {"rebuild": 1, "timeout": 1, "crash": 1}, lost_at_first=True),
    Scope("two rollbacks", ONE, BOTH, {"keep": 2, "rollback": 2, "loss": 1, "rebuild": 1}),
    Scope("calls that time out", TWO, BOTH, BACK | {"timeout": 2}),
    Scope("scripts that die half way", TWO, BOTH, BACK | {"abort": 1, "timeout": 1}, batch=2),
    Scope("two partitions, one row", APART, ANN, BACK | {"timeout": 1}),
    Scope("batches, killed between receipts", THREE, BOTH, BACK | {"crash": 1, "timeout": 1}, batch=2),
    Scope("the same result twice", REPEATED, ANN, {"crash": 1}),
    Scope("a zombie and a lost lane", TWO, BOTH, {"zombie": 1, "loss": 1, "rebuild": 1}),
    Scope("a zombie and a rollback", ONE, ANN, BACK | {"zombie": 2}),
    Scope("a log made anew", TWO_LOGS, ANN, {"new log": 1, "zombie": 1, "rebuild": 1}),
    Scope("a log made anew, and a rollback", TWO_LOGS, ANN, BACK | {"new log": 1, "rebuild": 1, "timeout": 1}),
    Scope("a log that drops what is old", TWO, BOTH, BACK | {"retention": 2, "timeout": 1, "rebuild": 1}),
    Scope("late commits below the log's start", TWO, ANN + BOTH[1:],
          {"retention": 2, "zombie": 1, "loss": 1, "rebuild": 1}),
    Scope("more lanes", TWO, BOARDS, {"new layout": 1, "rebuild": 1, "timeout": 1}, layouts=(1, 2)),
    Scope("fewer lanes", TWO, BOARDS, {"new layout": 1, "rebuild": 1, "timeout": 1, "crash": 1}, layouts=(2, 1)),
    Scope("more partitions", ADDED, BOTH, {"grow": 1, "timeout": 1}, partitions=1),
    Scope("more partitions, and a rollback", APART, ANN, BACK | {"grow": 1}, partitions=1),
    Scope("more partitions while a lane is rebuilt", APART, ANN, {"grow": 1, "loss": 1, "rebuild": 1}, partitions=1,
          cures=2),
    Scope("keys deleted by hand", TWO, BOTH, {"delete": 2, "mend": 1, "crash": 1}),
    Scope("keys deleted in a rebuild", ONE, BOTH, {"delete": 2, "rebuild": 1, "mend": 1}, lost_at_first=True),
    Scope("a mending rolled back", TWO, BOTH, BACK | {"delete": 1, "mend": 1, "timeout": 1}),
    Scope("two mendings at once", TWO, BOTH, {"delete": 2, "mend": 2}, cures=2),
    Scope("the prefilter", APART, ANN, BACK | {"timeout": 1}, prefilter=True),
    Scope("the prefilter, a zombie", RAISED, ANN, {"zombie": 1, "loss": 1, "rebuild": 1}, prefilter=True),
    Scope("a lane of another truth", TWO, BOTH, {"rebuild": 1}, prefilter=True, foreign=(0, 9), foreign_truth=True),
    Scope("a foreign entry below", TWO, BOTH, BACK | {"expel": 2, "crash": 1}, foreign=(0, 4)),
    Scope("a foreign entry equal", TWO, BOTH, BACK | {"expel": 2, "crash": 1}, foreign=(0, 5)),
    Scope("a foreign entry above", RAISED, ANN, {"expel": 2, "crash": 1, "zombie": 1}, foreign=(0, 9)),
    Scope("two expulsions at once", ONE, BOTH, BACK | {"expel": 2}, foreign=(0, 9), cures=2),
    Scope("an expulsion, and a key deleted", ONE, BOTH, {"expel": 1, "mend": 1, "delete": 1, "crash": 1},
          foreign=(0, 9), cures=2),
)  # fmt: skip


class Weakened(NamedTuple):
    """The protocol without these rules, where that goes wrong, and what has to be found."""

    off: frozenset[str]
    scope: Scope
    wrong: str

    def __str__(self) -> str:
        return " + ".join(sorted(self.off))


def _without(rules: str, scope: Scope, wrong: str) -> Weakened:
    return Weakened(frozenset(rules.split(" + ")), scope, wrong)


_TIME_OUT = Scope("time-out", TWO, BOTH, {"timeout": 1})
_CRASH = Scope("crash", TWO, BOTH, {"crash": 1})
_LOSS = Scope("loss", TWO, BOTH, {"loss": 1, "rebuild": 1})
_RACE = Scope("race", TURNED, BOTH, {"loss": 2, "rebuild": 2}, cures=2)
_REBUILT = Scope("rebuilt", ONE, BOTH, BACK | {"loss": 1, "rebuild": 1})
_NEW_LOG = Scope("new log", TWO_LOGS, ANN, {"new log": 1, "zombie": 1, "rebuild": 1, "timeout": 1})
_LAYOUT = Scope("layout", TWO, BOARDS, {"new layout": 1, "rebuild": 1}, layouts=(1, 2))
_TRUTH = Scope("truth", TWO, BOTH, {"rebuild": 1}, prefilter=True, foreign=(0, 9), foreign_truth=True)
_GROW_LOST = Scope("grow", APART, ANN, {"grow": 1, "loss": 1, "rebuild": 1}, partitions=1, cures=2)
_GROW = Scope("grow", ADDED, BOTH, BACK | {"grow": 1, "timeout": 1}, partitions=1)
_MEND = Scope("mend", ONE, BOTH, BACK | {"delete": 2, "mend": 1})
_MENDS = Scope("mendings", TURNED, BOTH, {"delete": 2, "mend": 2}, cures=2)
_EXPEL = Scope("expel", TWO, BOTH, {"expel": 2, "delete": 1, "mend": 1}, foreign=(0, 9), cures=2)
_LOWER = Scope("expel", (((Event("a", 0, 9), Event("b", 0, 12)),),), ANN, {"expel": 1}, foreign=(0, 9))

WEAKENED = (
    # the updater
    _without("record first", _CRASH, "I1"),
    _without("receipts last", _CRASH, "I3"),
    _without("commit last", _CRASH, "lost"),
    _without("repeats from row", _CRASH, "I3"),
    _without("behind", _TIME_OUT, "end"),
    _without("heartbeat", _TIME_OUT, "end"),
    _without("every lane", Scope("lanes", TWO, BOARDS, {}, layouts=(2,)), "end"),
    _without("none is start", _LOSS, "end"),
    _without("group by log", _NEW_LOG, "end"),
    _without("as_of on evidence", Scope("idle", TWO, BOTH, {}), "read"),
    _without("prefilter ids", _TRUTH, "end"),
    _without("dropped stay entries", Scope("prefilter", APART, ANN, BACK, prefilter=True), "I3"),
    _without("partitions told", _GROW, "read"),
    # project
    _without("contiguity", _TIME_OUT, "I3"),
    _without("missing is 0", _GROW, "I3"),
    _without("entries first", Scope("abort", TWO, BOTH, {"abort": 1}), "I3"),
    _without("log id", _NEW_LOG, "read"),
    _without("topology", _LAYOUT, "I3"),
    _without("truth id", _TRUTH, "end"),
    _without("as_of in lane", Scope("rollback", TWO, BOTH, BACK), "read"),
    _without("kept keys", Scope("delete", TWO, BOTH, {"delete": 2}), "I3"),
    # rebuild and keeper
    _without("S first", _LOSS, "I3"),
    _without("fence", _RACE, "I3"),
    _without("seq", _REBUILT, "I3"),
    _without("fresh epoch", _RACE, "I3"),
    _without("wait for older log", _NEW_LOG, "end"),
    _without("behind start", Scope("retention", TWO, BOTH, {"retention": 1, "timeout": 1}), "end"),
    _without("S at least start", Scope("late", TWO, BOTH, {"retention": 2, "zombie": 1, "loss": 1}), "end"),
    _without(
        "partitions after S",
        _GROW_LOST,
        "read",
    ),
    _without("read topology", _LAYOUT, "read"),
    # boards whose key was deleted
    _without("torn by merge", Scope("torn", TWO, BOTH, {"delete": 1}), "I3"),
    _without("torn not served", _MEND, "read"),
    _without("mend token", _MENDS, "I3"),
    _without("fresh token", _MENDS, "I3"),
    _without("mend steps", _MEND, "I3"),
    _without("mend mark", _MEND, "I3"),
    # entries that the truth does not back
    _without("torn by expel", _EXPEL, "I3"),
    _without("settle", _LOWER, "end"),
    _without("torn by expel + seen", _LOWER, "I3"),
    _without("settle token", _EXPEL, "I3"),
)

# Rules that cost nothing and that safety does not hang on: they spare work, or keep two runners from each other.
SPARE = (
    _without("begin compares", _RACE, ""),
    _without("finish sets", _RACE, ""),
    _without("seen", _LOWER, ""),
)
