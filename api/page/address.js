// The address of the page: which board, which player, which friends. All that a link shares is behind its `#`, which
// browsers don't send to servers.

const MOST_FRIENDS = 500;

/**
 * @typedef {object} Place
 * @property {string} board   a board or an alias, such as ranked:weekly; "" where none was chosen
 * @property {string} player  whose neighbours are shown; "" for none
 * @property {string[]} friends
 * @property {boolean} shared equal scores share a rank
 */

/** @returns {Place} */
export function readPlace(hash = location.hash) {
  const held = new URLSearchParams(hash.replace(/^#/, ""));
  return {
    board: held.get("board") ?? "",
    player: held.get("player") ?? "",
    friends: [...new Set(held.getAll("friend"))].filter(Boolean).slice(0, MOST_FRIENDS),
    shared: held.get("ties") === "shared",
  };
}

/** The address of a place, as a link of this page. @param {Place} place */
export function writePlace(place) {
  const held = new URLSearchParams();
  if (place.board) held.set("board", place.board);
  if (place.player) held.set("player", place.player);
  if (place.shared) held.set("ties", "shared");
  for (const friend of place.friends) held.append("friend", friend);
  return `#${held.toString().replaceAll("%3A", ":")}`;
}

/** `name` and `window` of a board's name; the window may be an alias, or hold a date. */
export function splitBoard(board) {
  const [name, kind = "", at = ""] = board.split(":");
  return { name, kind, at };
}

/** The alias of a board: of ranked:weekly:2026-W43 it is ranked:weekly, so that a link stays current. */
export function aliasOf(board) {
  const { name, kind } = splitBoard(board);
  return `${name}:${kind}`;
}
