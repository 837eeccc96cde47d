// The choice of leaderboard, window, and how ties are ranked.

import { aliasOf, splitBoard } from "./address.js";
import { find, make } from "./elements.js";
import { nameWindow } from "./words.js";

export class Choices {
  leaderboards = [];

  /** `onChoose(changes)` gets what changes in the place. */
  constructor({ onChoose }) {
    this.onChoose = onChoose;
    this.select = find("leaderboard");
    this.windows = find("windows");
    this.ties = find("ties");
    this.select.addEventListener("change", () => this.#choose(this.select.value));
    this.ties.addEventListener("change", () => onChoose({ shared: this.ties.checked }));
  }

  /** Offer what there is, and mark what the place says. @param {import("./address.js").Place} place */
  show(place) {
    const { name, kind, at } = splitBoard(place.board);
    const names = this.leaderboards.map((one) => one.leaderboard);
    if (name && !names.includes(name)) names.unshift(name);
    if (isNews(this.select, names)) {
      this.select.replaceChildren(...names.map((one) => make("option", { value: one, textContent: one })));
    }
    this.select.value = name;
    const current = this.#find(name)?.current_boards ?? [];
    const kinds = current.map((one) => splitBoard(one).kind);
    if (isNews(this.windows, kinds)) {
      this.windows.replaceChildren(this.windows.firstElementChild, ...kinds.map((one) => this.#makeWindow(one)));
    }
    const isCurrent = !at || current.includes(place.board);
    for (const input of this.windows.querySelectorAll("input")) input.checked = isCurrent && input.value === kind;
    this.ties.checked = place.shared;
  }

  /** How many digits of a leaderboard's scores are behind the point. */
  scaleOf(board) {
    return this.#find(splitBoard(board).name)?.scale ?? 0;
  }

  #find(name) {
    return this.leaderboards.find((one) => one.leaderboard === name);
  }

  #choose(name) {
    const { current_boards: boards, windows } = this.#find(name) ?? { current_boards: [], windows: ["all"] };
    const checked = this.windows.querySelector("input:checked")?.value;
    const board = boards.find((one) => splitBoard(one).kind === checked) ?? boards[0];
    this.onChoose({ board: board ? aliasOf(board) : `${name}:${windows[0]}` });
  }

  #makeWindow(kind) {
    const input = make("input", { type: "radio", name: "window", value: kind });
    input.addEventListener("change", () => this.onChoose({ board: `${this.select.value}:${kind}` }));
    return make("label", {}, input, make("span", { textContent: nameWindow(kind) }));
  }
}

/** Whether an element is to hold something else than it did: what stays the same keeps its focus. */
function isNews(element, held) {
  const wanted = JSON.stringify(held);
  const differs = element.dataset.of !== wanted;
  element.dataset.of = wanted;
  return differs;
}
