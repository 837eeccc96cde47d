// The page: what is chosen lives in the address; everything else follows from it and from what the API says.

import { aliasOf, readPlace, splitBoard, writePlace } from "./address.js";
import { BoardPanel } from "./board.js";
import { Choices } from "./choices.js";
import { find, say, tell } from "./elements.js";
import { FriendsPanel } from "./friends.js";
import { PlayerPanel } from "./player.js";
import { Problem, ask, boardPath, now } from "./requests.js";

const PANELS_MS = 2_000; // between two looks at player and friends
const LEADERBOARDS_MS = 60_000;
const RETRY_MS = 2_000;

const choices = new Choices({ onChoose: go });
const boardPanel = new BoardPanel({ look, onChange: schedulePanels });
const playerPanel = new PlayerPanel({ onFriend: toggleFriend, onClose: closePlayer });
const friendsPanel = new FriendsPanel({ onRemove: toggleFriend });

let place = readPlace();
let panelsAt = 0;
let panelsDue;

// ---- where we are

/** Go to a place that differs from this one by these; it gets an entry in the history unless only friends changed. */
function go(changes) {
  const next = { ...place, ...changes };
  const isStep = next.board !== place.board || next.player !== place.player || next.shared !== place.shared;
  history[isStep ? "pushState" : "replaceState"](null, "", writePlace(next));
  arrive();
}

function arrive() {
  const before = place;
  place = readPlace();
  place.board ||= before.board;
  choices.show(place);
  boardPanel.show(place);
  showPanels();
  if (place.player && place.player !== before.player) find("player").scrollIntoView({ block: "nearest" });
}

function look() {
  return {
    scale: choices.scaleOf(place.board),
    nowAt: now(),
    player: place.player,
    friends: new Set(place.friends),
    href: (id) => writePlace({ ...place, player: id }),
  };
}

/** Player and friends, at once. */
function showPanels() {
  clearTimeout(panelsDue);
  panelsDue = undefined;
  panelsAt = Date.now();
  if (!place.board || document.hidden) return;
  playerPanel.show(place, look());
  friendsPanel.show(place, look());
}

/** Player and friends, soon: however fast the list changes. */
function schedulePanels() {
  if (!place.player && place.friends.length === 0) return;
  panelsDue ??= setTimeout(showPanels, Math.max(0, panelsAt + PANELS_MS - Date.now()));
}

// ---- what the reader does

function toggleFriend(id) {
  const has = place.friends.includes(id);
  const focused = document.activeElement;
  go({ friends: has ? place.friends.filter((one) => one !== id) : [...place.friends, id] });
  tell(has ? `${id} is no longer among your friends` : `${id} is among your friends now`);
  if (focused?.classList.contains("remove")) find("friend-id").focus(); // its row goes
}

function closePlayer() {
  go({ player: "" });
  find("find-id").focus();
}

async function share() {
  const words = find("share-words");
  try {
    await navigator.clipboard.writeText(location.href);
    say(words, "Copied");
    tell("The link is copied.");
    setTimeout(() => say(words, "Copy link"), 2_000);
  } catch {
    // Not allowed, or not over plain HTTP: the reader copies it.
    find("link").hidden = false;
    find("link-text").value = location.href;
    find("link-text").select();
  }
}

/** The id that a form asks for, in the form that ids have; "" for none. */
function readId(event, input) {
  event.preventDefault();
  const id = find(input).value.normalize("NFC");
  find(input).value = "";
  return id;
}

function listen() {
  addEventListener("popstate", arrive); // also told of by links to another part behind the #
  document.addEventListener("visibilitychange", showPanels);
  find("share").addEventListener("click", share);
  find("jump").addEventListener("click", () => find("find-id").focus());
  find("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the part behind # is ours
    find("board-title").focus();
  });
  find("find").addEventListener("submit", (event) => {
    const player = readId(event, "find-id");
    if (player) go({ player });
  });
  find("befriend").addEventListener("submit", (event) => {
    const friend = readId(event, "friend-id");
    if (friend && !place.friends.includes(friend)) toggleFriend(friend);
  });
}

// ---- the beginning

/** The board to begin with: the first that has a score, `main` before others. */
async function chooseBoard() {
  const firsts = choices.leaderboards.filter((one) => one.current_boards.length).map((one) => one.current_boards[0]);
  firsts.sort((one, other) => Number(splitBoard(other).name === "main") - Number(splitBoard(one).name === "main"));
  const boards = await Promise.all(firsts.slice(0, 8).map((one) => ask(boardPath(one)).catch(() => null)));
  const first = firsts[Math.max(0, boards.findIndex((one) => one?.size > 0))];
  return first ? aliasOf(first) : "main:all";
}

/** What leaderboards there are, now and then again: new ones come, windows close. */
async function keepLeaderboards() {
  let began = false;
  for (;;) {
    let wait = LEADERBOARDS_MS;
    try {
      const { leaderboards } = await ask("v1/leaderboards");
      choices.leaderboards = leaderboards;
      if (!place.board) {
        place.board = await chooseBoard();
        history.replaceState(null, "", writePlace(place));
      }
      if (began) choices.show(place);
      else arrive();
      began = true;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (!began) boardPanel.fail(problem);
      wait = RETRY_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

listen();
keepLeaderboards();
