// Rows of a table that stay the same elements while their players move, so that the eye, the focus and a screen
// reader can follow.

import { make, say, showId } from "./elements.js";
import { showCount, showMoment, showScore } from "./words.js";

const MOVE_MS = 380;
const GLOW_MS = 1_600;
const MOST_ANIMATED = 60;

const stillness = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * @typedef {object} Look
 * @property {number} scale        of the leaderboard's scores
 * @property {number} nowAt        the server's time
 * @property {string} player       whose row is marked
 * @property {Set<string>} friends whose rows are marked, too
 * @property {(id: string) => string} href  where a player's name leads
 */

export class Rows {
  #rows = new Map();

  /** `body` is the tbody; `medals`: ranks 1 to 3 look like it; `removable(id)` is called by a button in each row. */
  constructor(body, { medals = false, moments = false, onRemove = null } = {}) {
    Object.assign(this, { body, medals, moments, onRemove });
  }

  /** Show these entries in this order. With `moves`, what moved since the last time is seen to move. */
  show(entries, look, moves = true) {
    const animated = moves && !stillness.matches && this.#rows.size > 0;
    const tops = animated ? this.#tops() : new Map();
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
    const kept = new Map();
    let place = this.body.firstElementChild;
    for (const entry of entries) {
      const row = this.#rows.get(entry.player_id) ?? this.#make(entry.player_id);
      kept.set(entry.player_id, row);
      this.#fill(row, entry, look, animated);
      if (row.element === place) place = place.nextElementSibling;
      else this.body.insertBefore(row.element, place);
    }
    for (const [id, row] of this.#rows) if (!kept.has(id)) row.element.remove();
    this.#rows = kept;
    if (focused && document.activeElement !== focused && focused.isConnected) focused.focus({ preventScroll: true });
    if (animated) this.#move(tops);
  }

  clear() {
    this.show([], null, false);
  }

  #make(id) {
    const link = make("a", { className: "name" }, showId(id));
    const cells = {
      rank: make("td", { className: "rank" }, make("span", { className: "place" })),
      name: make("th", { scope: "row", className: "who" }, link),
      when: make("td", { className: "when" }, make("time")),
      score: make("td", { className: "score" }),
    };
    const shown = [cells.rank, cells.name, ...(this.moments ? [cells.when] : []), cells.score];
    if (this.onRemove) {
      const label = `Remove ${id} from friends`;
      const button = make("button", { type: "button", className: "remove", "aria-label": label, title: label }, "×");
      button.addEventListener("click", () => this.onRemove(id));
      shown.push(make("td", { className: "act" }, button));
    }
    return { element: make("tr", {}, ...shown), link, ...cells };
  }

  #fill(row, entry, look, animated) {
    const place = row.rank.firstElementChild;
    say(place, entry.rank === null ? "–" : showCount(entry.rank));
    const medal = this.medals && entry.rank !== null && entry.rank <= 3 ? ` medal-${entry.rank}` : "";
    place.className = `place${medal}`;
    row.link.href = look.href(entry.player_id);
    row.element.classList.toggle("chosen", entry.player_id === look.player);
    row.element.classList.toggle("friend", look.friends.has(entry.player_id));
    if (entry.player_id === look.player) row.link.setAttribute("aria-current", "true");
    else row.link.removeAttribute("aria-current");
    const score = showScore(entry.score, look.scale);
    if (animated && row.score.textContent && row.score.textContent !== score) this.#glow(row.element);
    say(row.score, score);
    if (this.moments) this.#fillMoment(row.when.firstElementChild, entry.achieved_at, look.nowAt);
  }

  #fillMoment(time, at, nowAt) {
    const { short, whole } = at ? showMoment(at, nowAt) : { short: "", whole: "" };
    say(time, short);
    time.title = whole;
    if (at) time.dateTime = at;
    else time.removeAttribute("datetime");
  }

  #glow(element) {
    element.classList.remove("changed");
    void element.offsetWidth; // the animation begins anew
    element.classList.add("changed");
    setTimeout(() => element.classList.remove("changed"), GLOW_MS);
  }

  /** Where each row is seen now, on its way or not. */
  #tops() {
    return new Map(Array.from(this.#rows, ([id, row]) => [id, row.element.getBoundingClientRect().top]));
  }

  #move(tops) {
    let animated = 0;
    const rows = Array.from(this.#rows);
    for (const [, row] of rows) row.element.getAnimations().forEach((one) => one.id === "move" && one.cancel());
    const now = rows.map(([, row]) => row.element.getBoundingClientRect());
    rows.forEach(([id, row], index) => {
      const { top, bottom } = now[index];
      const from = tops.get(id);
      const isSeen = bottom > 0 && top < innerHeight;
      if (animated >= MOST_ANIMATED || from === top || !(isSeen || (from > 0 && from < innerHeight))) return;
      const frames = from === undefined ? [{ opacity: 0 }, { opacity: 1 }] : [{ transform: `translateY(${from - top}px)` }, { transform: "none" }];
      row.element.animate(frames, { id: "move", duration: MOVE_MS, easing: "cubic-bezier(.2, .7, .2, 1)" });
      animated += 1;
    });
  }
}
