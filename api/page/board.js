// The board: its title, its list, how fresh it is, and what is wrong where something is.

import { splitBoard } from "./address.js";
import { find, make, say, tell } from "./elements.js";
import { Feed } from "./feed.js";
import { now } from "./requests.js";
import { Rows } from "./rows.js";
import { describeWindow, nameWindow, showCount, showPlayers, showScore, showSpan } from "./words.js";

const COUNTS = matchMedia("(max-width: 56rem)").matches ? [20, 100, 1_000] : [50, 200, 1_000];
const LEAD_MS = 10_000; // between two announcements of a new leader
const LAGS_MS = 30_000;

export class BoardPanel {
  #place = null;
  #feed = null;
  #count = COUNTS[0];
  #page = null; // the list that is shown
  #board = null; // what is known of the board
  #problem = null;
  #live = false;
  #asOf = null;
  #leader = null;
  #leaderToldAt = 0;

  /** `look()` says how rows look now; `onChange()` is called whenever the board may have changed. */
  constructor({ look, onChange }) {
    this.look = look;
    this.onChange = onChange;
    this.rows = new Rows(find("entries"), { medals: true, moments: true });
    find("more").addEventListener("click", () => this.#showMore());
    setInterval(() => this.#showState(), 1_000);
  }

  /** Show the board of this place. @param {import("./address.js").Place} place */
  show(place) {
    const isNew = place.board !== this.#place?.board;
    this.#place = place;
    if (isNew) this.#begin();
    else this.#showList(false);
    this.#showTitle();
  }

  /** There is nothing to show yet, for this reason. */
  fail(problem) {
    this.#problem = problem;
    this.#showTrouble();
    this.#showState();
  }

  #begin() {
    this.#count = COUNTS[0];
    this.#page = this.#board = this.#problem = this.#asOf = this.#leader = null;
    this.rows.clear();
    find("top").hidden = find("empty").hidden = find("more").hidden = true;
    find("board").setAttribute("aria-busy", "true");
    this.#showTrouble();
    this.#follow();
    this.#showState();
  }

  #follow() {
    this.#feed?.close();
    this.#live = false;
    this.#feed = new Feed(this.#place.board, this.#count, {
      onTop: (page, live) => this.#take(page, live),
      onCheck: (board) => this.#check(board),
      onProblem: (problem) => this.#meet(problem),
    });
  }

  #showMore() {
    const first = this.#count;
    this.#count = COUNTS.find((one) => one > first) ?? first;
    this.#follow();
    find("more").hidden = true;
    find("entries").rows[first - 1]?.querySelector("a").focus({ preventScroll: true });
  }

  #take(page, live) {
    const isFirst = this.#page === null;
    this.#page = page;
    this.#live = live;
    this.#problem = null;
    this.#asOf = page.as_of;
    this.#showList(!isFirst);
    this.#showTrouble();
    this.#showState();
    this.#tellLeader(isFirst);
    this.onChange();
  }

  #check(board) {
    if (board.state === "ready" && this.#board?.state === "rebuilding") tell("The board is complete again.");
    this.#board = board;
    if (board.state === "ready") this.#asOf = board.as_of;
    this.#showTitle();
    this.#showState();
    this.onChange();
  }

  #meet(problem) {
    this.#live = false;
    this.fail(problem);
    this.onChange();
  }

  #tellLeader(isFirst) {
    const first = this.#page.entries[0];
    const before = this.#leader;
    this.#leader = first?.player_id ?? null;
    if (!first || this.#leader === before || (!isFirst && now() - this.#leaderToldAt < LEAD_MS)) return;
    this.#leaderToldAt = now();
    const score = showScore(first.score, this.look().scale);
    if (isFirst) tell(`${this.#page.board}: ${showPlayers(this.#page.size)}, ${this.#leader} leads with ${score}`);
    else tell(`${this.#leader} takes the lead with ${score}`);
  }

  #showList(moves) {
    const page = this.#page;
    if (page === null) return;
    const entries = this.#place.shared ? shareRanks(page.entries) : page.entries;
    this.rows.show(entries, this.look(), moves);
    find("board").setAttribute("aria-busy", "false");
    find("top").hidden = entries.length === 0;
    find("empty").hidden = entries.length > 0;
    find("more").hidden = this.#count === COUNTS.at(-1) || page.size <= this.#count;
    say(find("caption"), `Top players of ${page.board}`);
  }

  #showTitle() {
    const { name, kind, at } = splitBoard(this.#place.board);
    const board = this.#board;
    say(find("board-title"), name);
    say(find("window"), board === null ? "" : describeWindow(board.window, board.board, now()));
    document.title = `${name}, ${at || nameWindow(kind).toLowerCase()} – Standings`;
  }

  #showState() {
    const page = this.#page;
    const age = this.#asOf === null ? null : now() - Date.parse(this.#asOf);
    const lags = age > LAGS_MS;
    let mode = this.#live ? "Live" : "Every 2 s";
    if (page === null) mode = this.#problem ? "" : "Connecting";
    else if (this.#problem) mode = "Not live";
    say(find("mode"), mode);
    find("dot").className = `dot ${this.#problem || lags ? "off" : this.#live ? "on" : ""}`;
    say(find("size"), page ? showPlayers(page.size) : "");
    let fresh = "";
    if (lags) fresh = `behind: as of ${showSpan(age)} ago`;
    else if (age !== null) fresh = `as of ${showSpan(Math.max(age, 1_000))} ago`;
    say(find("as-of"), fresh);
  }

  #showTrouble() {
    const problem = this.#problem;
    const old = this.#page ? " What is shown below is older." : "";
    const words = problem ? describe(problem) + old : "";
    find("main").classList.toggle("stale", problem !== null);
    if (problem) find("board").setAttribute("aria-busy", "false");
    if (find("trouble").textContent === words) return;
    find("trouble").replaceChildren(...(words ? [make("p", {}, words)] : []));
  }
}

/** The list begins at rank 1: who has the same score as the one before has the same rank. */
function shareRanks(entries) {
  let rank = 0;
  return entries.map((entry, index) => {
    if (index === 0 || entries[index - 1].score !== entry.score) rank = entry.rank;
    return { ...entry, rank };
  });
}

function describe({ name, body, message }) {
  const rows = body.progress?.rows;
  const known = {
    "board-not-ready": `This board is being rebuilt${rows === undefined ? "" : `, ${showCount(rows)} scores so far`}. It comes back by itself, complete.`,
    "board-expired": "This board has expired: its window ended long ago, and its ranks are kept no longer.",
    "board-not-found": "There is no such board, or its window has not opened yet.",
    "leaderboard-not-found": "There is no such leaderboard.",
    "store-unavailable": "The scores can’t be read at the moment. Trying again.",
    unreachable: "The service can’t be reached. Trying again.",
  };
  return known[name] ?? `The board can’t be shown: ${message}.`;
}
