// Words: scores, times and windows as people read them. Numbers and dates follow the reader's language.

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

const numbers = new Map();

/** A score with the leaderboard's scale: 1442 of scale 2 is 14.42. Exact: never computed as a fraction. */
export function showScore(score, scale = 0) {
  if (!numbers.has(scale)) {
    numbers.set(scale, new Intl.NumberFormat(undefined, { minimumFractionDigits: scale, maximumFractionDigits: scale }));
  }
  const digits = String(Math.abs(score)).padStart(scale + 1, "0");
  const whole = digits.slice(0, digits.length - scale);
  const text = scale ? `${whole}.${digits.slice(-scale)}` : whole;
  return numbers.get(scale).format(score < 0 ? `-${text}` : text);
}

/** A count or a rank. */
export function showCount(count) {
  return showScore(count);
}

/** `27 players`. */
export function showPlayers(size) {
  return size === 1 ? "1 player" : `${showCount(size)} players`;
}

/** `2 s`, `5 min`, `3 h`, `2 days`: how long, in one unit, cut. */
export function showSpan(ms) {
  const s = Math.max(0, Math.floor(ms / 1_000));
  if (s < 2 * MINUTE_S) return `${s} s`;
  if (s < 2 * HOUR_S) return `${Math.floor(s / MINUTE_S)} min`;
  if (s < 2 * DAY_S) return `${Math.floor(s / HOUR_S)} h`;
  return `${showCount(Math.floor(s / DAY_S))} days`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dates = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const utcDates = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const utcMonths = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric", timeZone: "UTC" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** When a score was reached: the time where that was today, else the day; all of it in `whole`. */
export function showMoment(at, nowAt) {
  const date = new Date(at);
  const isToday = dates.format(date) === dates.format(new Date(nowAt));
  return { short: (isToday ? clock : dates).format(date), whole: whole.format(date) };
}

const CURRENT = { all: "All time", daily: "Today", weekly: "This week", monthly: "This month" };

/** The name of a window that is open now. */
export function nameWindow(kind) {
  return CURRENT[kind] ?? kind;
}

/** A board's window in a line: which days, and when it ends. */
export function describeWindow({ kind, starts_at, ends_at }, name, nowAt) {
  const parts = [];
  if (kind === "daily") parts.push(utcDates.format(new Date(starts_at)));
  else if (kind === "weekly") {
    const last = new Date(Date.parse(ends_at) - 1);
    parts.push(`Week ${Number(name.split("-W")[1])}`, utcDates.formatRange(new Date(starts_at), last));
  } else if (kind === "monthly") parts.push(utcMonths.format(new Date(starts_at)));
  else parts.push("All time");
  const left = ends_at === null ? NaN : Date.parse(ends_at) - nowAt;
  if (left > 0) parts.push(kind === "all" ? `until ${utcDates.format(new Date(ends_at))}` : `${showSpan(left)} left`);
  else if (left <= 0) parts.push("closed");
  return parts.join(" · ");
}
