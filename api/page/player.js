// The panel of one player: rank, score, and who is near.

import { find, make, say, showId, tell } from "./elements.js";
import { Problem, ask, boardPath } from "./requests.js";
import { Rows } from "./rows.js";
import { showCount, showScore } from "./words.js";

const NEIGHBOURS = 3;

export class PlayerPanel {
  #turn = 0;
  #shown = ""; // of which board and player something is shown

  /** `onFriend(id)` adds or removes; `onClose()` shows nobody. */
  constructor({ onFriend, onClose }) {
    this.element = find("player");
    this.title = make("h3", { className: "player-title" });
    this.facts = make("p", { className: "facts" });
    this.table = makeTable();
    this.rows = new Rows(this.table.querySelector("tbody"));
    this.friend = make("button", { type: "button" });
    this.friend.addEventListener("click", () => onFriend(this.player));
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", onClose);
    this.element.append(this.title, this.facts, this.table, make("p", { className: "buttons" }, this.friend, close));
  }

  /** Show the player of this place, from the board as it is now. @param {import("./address.js").Place} place */
  async show(place, look) {
    const turn = (this.#turn += 1);
    this.player = place.player;
    this.element.hidden = !place.player;
    if (!place.player) {
      this.#shown = "";
      return;
    }
    const which = `${place.board} ${place.player}`;
    const isNew = which !== this.#shown;
    if (isNew) this.#begin(which, place.player);
    say(this.friend, look.friends.has(place.player) ? "Remove from friends" : "Add to friends");
    const parameters = { id: place.player, ...(place.shared ? { ties: "shared" } : {}) };
    try {
      const player = await ask(boardPath(place.board, "player"), parameters);
      if (turn !== this.#turn) return;
      this.#showFacts(player, look);
      if (isNew) tell(`${place.player}: ${this.facts.textContent}`);
      const near = player.rank === null ? null : await ask(boardPath(place.board, "around"), { ...parameters, k: NEIGHBOURS });
      if (turn !== this.#turn) return;
      this.table.hidden = near === null;
      if (near) this.rows.show(near.entries, look, !isNew);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (turn === this.#turn) this.#showProblem(problem, isNew);
    }
  }

  #begin(which, player) {
    this.#shown = which;
    this.title.replaceChildren(showId(player));
    say(this.facts, "Looking…");
    this.table.hidden = true;
    this.rows.clear();
  }

  #showFacts(player, look) {
    const score = showScore(player.score, look.scale);
    if (player.rank === null) {
      say(this.facts, `${score} points. The rank is unknown while the board is rebuilt.`);
    } else {
      const share = `top\u00a0${player.top_percent.toLocaleString(undefined, { maximumFractionDigits: 2 })}%`;
      say(this.facts, `Rank ${showCount(player.rank)} of ${showCount(player.size)} · ${score} · ${share}`);
    }
  }

  #showProblem(problem, isNew) {
    const known = {
      "player-not-found": "No score on this board yet.",
      "invalid-request": `This can’t be a player’s id: ${problem.body.errors?.[0]?.detail ?? problem.message}.`,
    }[problem.name];
    if (!known) {
      // The board's own message tells of troubles that all share; what is shown may still be right.
      if (isNew) say(this.facts, "Not to be read at the moment.");
      return;
    }
    say(this.facts, known);
    this.table.hidden = true;
    if (isNew) tell(`${this.player}: ${known}`);
  }
}

function makeTable() {
  const head = make(
    "tr",
    {},
    make("th", { scope: "col", className: "rank" }, "Rank"),
    make("th", { scope: "col" }, "Player"),
    make("th", { scope: "col", className: "score" }, "Score"),
  );
  const caption = make("caption", { className: "unseen" }, "The player and neighbours");
  return make("table", { className: "rows small", hidden: true }, caption, make("thead", {}, head), make("tbody"));
}
