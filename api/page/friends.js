// The panel of friends: those in the address, ranked among themselves.

import { find, make, say, showId } from "./elements.js";
import { Problem, ask, boardPath } from "./requests.js";
import { Rows } from "./rows.js";

export class FriendsPanel {
  #turn = 0;
  #asked = "";

  /** `onRemove(id)` takes one off the list. */
  constructor({ onRemove }) {
    this.onRemove = onRemove;
    this.note = make("p", { className: "facts", textContent: "Nobody yet. Add players to compare them here." });
    this.table = makeTable();
    this.rows = new Rows(this.table.querySelector("tbody"), { onRemove });
    this.missing = make("ul", { className: "missing", hidden: true });
    find("friends").append(this.note, this.table, this.missing);
  }

  /** Show the friends of this place, from the board as it is now. @param {import("./address.js").Place} place */
  async show(place, look) {
    const turn = (this.#turn += 1);
    const which = JSON.stringify([place.board, place.shared]);
    const isNew = which !== this.#asked;
    this.#asked = which;
    if (place.friends.length === 0) {
      this.#showNobody();
      return;
    }
    try {
      const parameters = place.shared ? { ties: "shared" } : {};
      const found = await ask(boardPath(place.board, "friends"), parameters, { player_ids: place.friends });
      if (turn !== this.#turn) return;
      this.#showFound(found, look, isNew);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (turn === this.#turn) this.#showProblem(problem, place.friends);
    }
  }

  #showNobody() {
    say(this.note, "Nobody yet. Add players to compare them here.");
    this.note.hidden = false;
    this.table.hidden = this.missing.hidden = true;
    this.rows.clear();
    this.missing.replaceChildren();
  }

  #showFound(found, look, isNew) {
    this.table.hidden = found.entries.length === 0;
    this.rows.show(found.entries, look, !isNew);
    say(this.note, found.state === "rebuilding" ? "Ranks are unknown while the board is rebuilt." : "");
    this.note.hidden = !this.note.textContent;
    this.#list(found.missing, "no score yet");
  }

  #showProblem(problem, friends) {
    if (problem.name === "invalid-request") {
      // One of them can't be an id: they are all listed, so that it can be removed.
      say(this.note, `One of these can’t be a player’s id: ${problem.body.errors?.[0]?.detail ?? problem.message}.`);
      this.note.hidden = false;
      this.table.hidden = true;
      this.#list(friends, "");
    } else if (this.table.hidden && this.missing.hidden) {
      say(this.note, "Not to be read at the moment.");
      this.note.hidden = false;
    }
  }

  #list(ids, why) {
    const wanted = JSON.stringify([ids, why]);
    if (wanted === this.missing.dataset.of) return; // the same elements, so that the focus stays
    this.missing.dataset.of = wanted;
    this.missing.hidden = ids.length === 0;
    this.missing.replaceChildren(
      ...ids.map((id) => {
        const label = `Remove ${id} from friends`;
        const button = make("button", { type: "button", className: "remove", "aria-label": label, title: label }, "×");
        button.addEventListener("click", () => this.onRemove(id));
        return make("li", {}, make("span", {}, showId(id), why ? make("small", {}, ` ${why}`) : ""), button);
      }),
    );
  }
}

function makeTable() {
  const head = make(
    "tr",
    {},
    make("th", { scope: "col", className: "rank" }, "Rank"),
    make("th", { scope: "col" }, "Player"),
    make("th", { scope: "col", className: "score" }, "Score"),
    make("td", { className: "act" }),
  );
  const caption = make("caption", { className: "unseen" }, "Friends, best first, with their ranks on the board");
  return make("table", { className: "rows small", hidden: true }, caption, make("thead", {}, head), make("tbody"));
}
