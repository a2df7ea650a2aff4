// One filter for all charts, tables and findings, and the address that holds it.
//
// Elements that are about cells carry data-facets, a number; the table "explored" says what it means.
// Nothing is fetched, and whatever stood in a record or in the address goes into the page as text.
const explore = (() => {
  const stored = (id) => JSON.parse(document.getElementById(id)?.textContent || "null");
  const data = stored("explored") || { facets: { names: ["cell"], values: [[]], rows: [] }, charts: {} };
  const study = stored("summary")?.study || "study";
  const names = data.facets.names;
  const CELL = names.indexOf("cell");
  const values = data.facets.values.map((packed) => {
    let before = "";
    return packed.map(([shared, tail]) => (before = before.slice(0, shared) + tail));
  });
  const places = values.map((known) => new Map(known.map((value, at) => [value, at])));
  // For every number and facet the places of its values: null, one, or a list.
  const rows = data.facets.rows;
  const listed = (held) => (held === null ? [] : Array.isArray(held) ? held : [held]);

  // No search is longer than what it may find.
  const LONGEST = values[CELL].reduce((most, id) => Math.max(most, id.length), 200);
  const fresh = () => ({ place: "", chosen: names.map(() => new Set()), cell: "", only: false, sorts: new Map(), finds: new Map() });
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

  // A Uint8Array with a 1 for every number of facets that the filter lets through; null without a filter.
  const passing = () => {
    if (!active()) return null;
    const pass = new Uint8Array(rows.length).fill(1);
    const wanted = names.map((_, at) => {
      const chosen = state.chosen[at];
      if (at === CELL) {
        const part = asCell(state.cell);
        return part ? Uint8Array.from(values[CELL], (id) => id.toLowerCase().includes(part)) : null;
      }
      return chosen.size ? Uint8Array.from(values[at], (_, place) => chosen.has(place)) : null;
    });
    wanted.forEach((allowed, at) => {
      if (!allowed) return;
      for (let n = 0; n < rows.length; n++) {
        if (!pass[n]) continue;
        const held = rows[n][at];
        if (held === null) pass[n] = state.only ? 0 : 1;
        else pass[n] = Array.isArray(held) ? (held.some((value) => allowed[value]) ? 1 : 0) : allowed[held];
      }
    });
    return pass;
  };
  const active = () => state.cell !== "" || state.chosen.some((chosen) => chosen.size);

  const written = (changed = {}) => {
    const now = { ...state, ...changed };
    const query = new URLSearchParams();
    names.forEach((name, at) => [...now.chosen[at]].sort((a, b) => a - b).forEach((value) => query.append(name, values[at][value])));
    if (now.cell) query.set("cell", now.cell);
    if (now.only) query.set("only", "1");
    for (const [id, [column, down]] of now.sorts) query.append("sort", `${id}~${column}~${down ? "down" : "up"}`);
    for (const [id, text] of now.finds) query.append("find", `${id}~${text}`);
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
      if (key === "cell") {
        if (value.length > LONGEST) ignored.push(`a cell of ${value.length} characters`);
        else made.cell = value.trim();
      } else if (at >= 0) {
        const known = places[at].get(value);
        if (known === undefined) ignored.push(`${key} “${short(value)}” is not in this report`);
        else made.chosen[at].add(known);
      } else if (key === "only" && value === "1") {
        made.only = true;
      } else {
        const taken = parts.some((part) => part.read && part.read(key, value, made));
        if (!taken) ignored.push(`${short(key)}=${short(value)}`);
      }
    }
    if (made.cell && !values[CELL].some((id) => id.toLowerCase().includes(asCell(made.cell)))) {
      ignored.push(`no cell “${short(made.cell)}” is in this report`);
      made.cell = "";
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
      const held = [...section.querySelectorAll("[data-facets]")];
      const shown = pass === null ? 0 : held.filter((element) => !element.closest("[hidden]")).length;
      const nothing = pass !== null && held.length > 0 && shown === 0;
      section.querySelector(".matches")?.remove();
      if (pass !== null && held.length) {
        section.querySelector("h2")?.after(make("span", { class: "matches" }, shown ? `${shown} of ${held.length} match` : "nothing here matches the filter"));
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

  // Everything but rows of tables that are searched and sorted: findings, failures, entries of the decision table.
  const others = () => {
    const held = [...document.querySelectorAll("[data-facets]:not(table[id] tr)")].map((element) => [element, +element.dataset.facets]);
    parts.push({
      apply(pass) {
        let shown = 0;
        for (const [element, number] of held) {
          const stays = pass === null || pass[number] === 1;
          if (element.hidden === stays) element.hidden = !stays;
          shown += stays;
        }
        return held.length ? [shown, held.length, "statement"] : null;
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

  const bar = {
    build() {},
    show() {},
    say() {},
    complain() {},
    warn() {},
    words: () => "",
  };

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
    LONGEST, data, study, names, values, rows, CELL, bar, parts, listed, make, short, counted, written, change, reveal, apply, active,
    state: () => state,
    cells: (number) => (number === undefined || number === null ? [] : listed(rows[number][CELL]).map((at) => values[CELL][at])),
  };
})();
