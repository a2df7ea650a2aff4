// One filter for all charts, tables and findings, and the address that holds it.
//
// Elements that are about cells carry data-facets, a number; the table "explored" says what it means.
// Nothing is fetched, and whatever stood in a record or in the address goes into the page as text.
const explore = (() => {
  const data = JSON.parse(document.getElementById("explored").textContent);
  const { study } = document.documentElement.dataset;
  const names = data.facets.names;
  const CELL = names.indexOf("cell");
  const { values } = data.facets;
  const places = values.map((known) => new Map(known.map((value, at) => [value, at])));
  // For every number and facet the places of its values: null, one, or a list.
  const rows = data.facets.rows;
  const listed = (held) => (held === null ? [] : Array.isArray(held) ? held : [held]);

  // No search is longer than what it may find.
  const LONGEST = values[CELL].reduce((most, id) => Math.max(most, id.length), 200);
  const fresh = () => ({ place: "", chosen: names.map(() => new Set()), words: [], sorts: new Map() });
  let state = fresh();
  const parts = [];

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === false || value === null) continue;
      element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  };
  const short = (text, most = 48) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const counted = (amount, noun) => `${amount} ${noun}${amount === 1 ? "" : "s"}`;

  // The id of a repeat names its cell too: `.r2` and the hash fall away.
  const asCell = (text) => text.replace(/\.r\d+~[0-9a-f]{8}$/, "~").toLowerCase();

  const split = (text) => text.slice(0, LONGEST).split(/\s+/).filter(Boolean);

  // All values of a number of facets, to be searched.
  const known = new Map();
  const about = (number) => {
    if (!known.has(number)) known.set(number, rows[number].flatMap((held, at) => listed(held).map((value) => values[at][value])).join(" ").toLowerCase());
    return known.get(number);
  };

  // Whether the filter lets through what is about a number of facets and says a text; null without a filter. What names
  // no value of a facet that is chosen among does not match it; what is about no facet at all stays.
  const passing = () => {
    if (!active()) return null;
    const words = state.words.map(asCell);
    const wanted = names.map((_, at) => (state.chosen[at].size ? [at, state.chosen[at]] : null)).filter(Boolean);
    const pass = rows.map((row) => wanted.every(([at, chosen]) => listed(row[at]).some((value) => chosen.has(value))));
    return (number, text) => {
      const said = number === null ? text : () => `${text()}\n${about(number)}`;
      return (number === null || pass[number]) && words.every((word) => said().includes(word));
    };
  };
  const active = () => state.words.length > 0 || state.chosen.some((chosen) => chosen.size);

  const written = (changed = {}) => {
    const now = { ...state, ...changed };
    const query = new URLSearchParams();
    names.forEach((name, at) => [...now.chosen[at]].sort((a, b) => a - b).forEach((value) => query.append(name, values[at][value])));
    if (now.words.length) query.set("words", now.words.join(" "));
    for (const [id, [column, down]] of now.sorts) query.append("sort", `${id}~${column}~${down ? "down" : "up"}`);
    const text = query.toString();
    return `#${encodeURIComponent(now.place)}${text ? `?${text}` : ""}`;
  };

  // What the address asks for; what it cannot mean is named and left out.
  const read = (hash) => {
    const made = fresh();
    const ignored = [];
    const text = hash.replace(/^#/, "");
    const cut = text.indexOf("?");
    let place = cut < 0 ? text : text.slice(0, cut);
    try {
      place = decodeURIComponent(place);
    } catch {
      // A lone percent sign: no id has one.
    }
    if (place && document.getElementById(place)) made.place = place;
    else if (place) ignored.push(`no place “${short(place)}”`);
    for (const [key, value] of new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1))) {
      const at = names.indexOf(key);
      if (key === "words" || key === "cell") {
        if (value.length > LONGEST) ignored.push(`words of ${value.length} characters`);
        else made.words = split(value);
      } else if (at >= 0) {
        const known = places[at].get(value);
        if (known === undefined) ignored.push(`${key} “${short(value)}” is not in this report`);
        else made.chosen[at].add(known);
      } else {
        const taken = parts.some((part) => part.read && part.read(key, value, made));
        if (!taken) ignored.push(`${short(key)}=${short(value)}`);
      }
    }
    return [made, ignored];
  };

  const apply = () => {
    const pass = passing();
    const counts = parts.map((part) => part.apply(pass, state)).filter(Boolean);
    bar.show(pass, counts);
    sections(pass);
  };

  // What is hidden because of the filter takes its heading along; a section that is left empty says so.
  const sections = (pass) => {
    for (const section of document.querySelectorAll("main > section")) {
      const held = [...section.querySelectorAll(state.words.length ? "[data-facets], table[id] tbody tr, .facts > div" : "[data-facets]")];
      const shown = pass === null ? 0 : held.filter((element) => !element.closest("[hidden]")).length;
      const nothing = pass !== null && held.length > 0 && shown === 0;
      section.querySelector(".matches")?.remove();
      if (pass !== null && held.length) {
        section.querySelector("h2")?.after(make("span", { class: "matches" }, shown ? `${shown} of ${held.length} match` : "nothing here matches"));
      }
      for (const heading of section.querySelectorAll("h3")) {
        const below = [];
        for (let next = heading.nextElementSibling; next && !/^H[23]$/.test(next.tagName); next = next.nextElementSibling) below.push(next);
        heading.hidden = pass !== null && below.length > 0 && below.every((part) => part.hidden);
      }
      const link = document.querySelector(`nav a[href="#${CSS.escape(section.id)}"]`);
      if (link) link.classList.toggle("empty", nothing);
    }
  };

  // Everything but rows of tables that are sorted: findings, failures, entries of the decision table, words explained.
  const others = () => {
    const held = [...document.querySelectorAll("[data-facets]:not(table[id] tr), .facts > div")].map((element) => {
      let text = null;
      const number = element.dataset.facets === undefined ? null : +element.dataset.facets;
      return [element, number, () => (text ??= element.textContent.toLowerCase())];
    });
    parts.push({
      apply(pass, now) {
        let shown = 0, all = 0;
        for (const [element, number, text] of held) {
          const stays = pass === null || pass(number, text);
          if (element.hidden === stays) element.hidden = !stays;
          if (number === null && !now.words.length) continue;
          all += 1;
          shown += stays;
        }
        return all ? [shown, all, "statement"] : null;
      },
    });
  };

  const go = (hash, { replace = false } = {}) => {
    try {
      history[replace ? "replaceState" : "pushState"](null, "", hash);
    } catch {
      // A page without an address of its own, such as one shown inside of another, has no history.
    }
  };

  // Open what a place is folded into, and show it; one that the filter hides is not lost in silence.
  const reveal = (id) => {
    const element = id && document.getElementById(id);
    if (!element) return;
    bar.warn(element.closest("[hidden]") ? ["what the link leads to does not match the filter, which hides it"] : []);
    page.reveal(element);
    element.scrollIntoView();
  };

  // Change the state: a step back in history undoes it, but for what follows while somebody types.
  let last = "";
  const change = (edit, kind = "") => {
    edit(state);
    apply();
    go(written(), { replace: kind !== "" && kind === last });
    last = kind;
  };

  const restore = () => {
    const [made, ignored] = read(location.hash);
    state = made;
    last = "";
    apply();
    bar.complain(ignored);
    if (location.hash.includes("?")) reveal(state.place);
    else if (state.place) document.getElementById(state.place).closest("details:not([open])") && reveal(state.place);
  };

  // Filled by explore_bar.js.
  const bar = {};

  const start = () => {
    for (const part of parts) part.start?.();
    others();
    const main = document.querySelector("main");
    bar.build(main);
    restore();
    addEventListener("popstate", restore);
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="#"]');
      if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const hash = link.getAttribute("href");
      event.preventDefault();
      if (hash.includes("?")) {
        go(hash);
        restore();
        return;
      }
      // A step within the page keeps the filter.
      const id = decodeURIComponent(hash.slice(1));
      if (!document.getElementById(id)) return;
      change((now) => { now.place = id; });
      reveal(id);
    });
    document.documentElement.dataset.explore = "ready";
  };
  document.addEventListener("DOMContentLoaded", start);

  return {
    split, about, data, study, names, values, rows, CELL, bar, parts, listed, make, short, counted, written, change, reveal, apply, active,
    state: () => state,
    cells: (number) => (number === undefined || number === null ? [] : listed(rows[number][CELL]).map((at) => values[CELL][at])),
  };
})();
