// The feed of one board: server-sent events while they come, asking again and again while they don't.

import { Problem, address, ask, boardPath } from "./requests.js";

const CHECK_MS = 3_000; // as_of and state beside a stream that works: it tells changes alone
const POLL_MS = 2_000; // the list where there is no stream
const REOPEN_MS = 500;
const REOPEN_LATER_MS = 5_000;

/**
 * Follows a board until it is closed; rests while nobody looks.
 * Calls `onTop(page, live)` with every list, `onCheck(board)` with the board's state, as_of and size every few
 * seconds, and `onProblem(problem)` with what keeps the list from being read. A list says that the problem is over.
 */
export class Feed {
  #closed = false;
  #turn = 0; // of beginning anew: what was asked for in another turn is of no interest any more
  #streams = false; // the stream is open and has brought a list
  #lists = 0; // that came by the stream
  #missed = false; // a problem came after the last list; a stream tells changes alone, and so not that it is over
  #resolved = ""; // which board the lists are of, where `board` is an alias
  #source;
  #checking;
  #opening;

  constructor(board, count, { onTop, onCheck, onProblem }) {
    Object.assign(this, { board, count, onTop, onCheck, onProblem });
    this.onVisible = () => (document.hidden ? this.#rest() : this.#begin());
    document.addEventListener("visibilitychange", this.onVisible);
    this.onVisible();
  }

  close() {
    this.#closed = true;
    document.removeEventListener("visibilitychange", this.onVisible);
    this.#rest();
  }

  #begin() {
    this.#rest();
    if (this.#closed) return;
    this.#open();
    this.#check();
  }

  #rest() {
    this.#turn += 1;
    this.#streams = false;
    this.#source?.close();
    clearTimeout(this.#checking);
    clearTimeout(this.#opening);
  }

  #open() {
    const source = new EventSource(address(boardPath(this.board, "live"), { n: this.count }));
    this.#source = source;
    source.addEventListener("top", (event) => {
      this.#streams = true;
      this.#lists += 1;
      this.#show(JSON.parse(event.data));
    });
    source.addEventListener("error", () => {
      // A browser gives up on some errors and waits long after others: reopening is ours.
      source.close();
      const broke = this.#streams;
      this.#streams = false;
      this.#opening = setTimeout(() => this.#open(), broke ? REOPEN_MS : REOPEN_LATER_MS);
      if (broke) this.#check();
    });
  }

  #show(page) {
    this.#resolved = page.board;
    this.#missed = false;
    this.onTop(page, this.#streams);
  }

  /** Asks for the board, and for its list unless the stream brings it; comes again by itself. */
  async #check() {
    clearTimeout(this.#checking);
    const turn = this.#turn;
    let isWhole = false;
    try {
      const board = await ask(boardPath(this.board));
      if (turn !== this.#turn) return;
      if (this.#resolved && this.#resolved !== board.board) {
        this.#resolved = "";
        return this.#begin(); // another day has begun
      }
      this.onCheck(board);
      isWhole = this.#streams && !this.#missed && board.state === "ready";
      if (!isWhole) {
        const lists = this.#lists;
        const page = await ask(boardPath(this.board, "top"), { n: this.count });
        if (turn !== this.#turn) return;
        if (lists === this.#lists) this.#show(page);
        isWhole = this.#streams;
      }
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (turn !== this.#turn) return;
      this.#missed = true;
      this.onProblem(problem);
    }
    clearTimeout(this.#checking);
    this.#checking = setTimeout(() => this.#check(), isWhole ? CHECK_MS : POLL_MS);
  }
}
