// Elements, made without ever parsing text as HTML: players choose their ids.

/** An element with properties (`data-…`, `aria-…`, `role`, `scope` are attributes) and children; strings are text. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** A player id, kept from turning the text around it; one that has nothing to see is spelled out. */
export function showId(id) {
  const visible = /[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(id);
  if (visible) return make("bdi", { className: "id", textContent: id });
  const points = Array.from(id, (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
  return make("bdi", { className: "id spelled", textContent: points.join(" ") });
}

/** Replace what an element holds, unless it holds the same already: a screen reader hears changes alone. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The element of this id in the document. */
export function find(id) {
  return document.getElementById(id);
}

/** Say it to screen readers alone. */
export function tell(text) {
  say(find("told"), text);
}
