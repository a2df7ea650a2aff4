// The filter's own controls: a button with a list for each facet, a field for a cell, and what they let through.
(() => {
  const { make, names, values, rows, CELL, listed, counted, bar } = explore;
  const title = (name) => name[0].toUpperCase() + name.slice(1);
  const buttons = [];
  let summary, spoken, ignored, clear, field, note;

  const amounts = () => {
    const elements = new Uint32Array(rows.length);
    for (const element of document.querySelectorAll("[data-facets]")) elements[+element.dataset.facets]++;
    const found = values.map((known) => new Uint32Array(known.length));
    rows.forEach((row, number) => row.forEach((held, at) => {
      for (const place of listed(held)) found[at][place] += elements[number];
    }));
    return found;
  };

  const panel = (at, amount) => {
    const id = `facet-${names[at]}`;
    const button = make("button", { type: "button", class: "facet", popovertarget: id }, title(names[at]), make("b"));
    const boxes = values[at].map((value, place) => {
      const box = make("input", { type: "checkbox", value: String(place) });
      const label = make("label", {}, box, make("span", {}, value), make("span", { class: "quiet", "aria-hidden": "true" }, String(amount[place])));
      return [box, label];
    });
    const list = make("div", { class: "options" }, ...boxes.map(([, label]) => label));
    list.addEventListener("change", (event) => {
      const place = +event.target.value;
      explore.change((state) => state.chosen[at][event.target.checked ? "add" : "delete"](place));
    });
    const box = make("div", { id, popover: "auto", class: "facet-panel", role: "group", "aria-label": title(names[at]) });
    box.append(list);
    box.addEventListener("toggle", (event) => {
      if (event.newState !== "open") return;
      const under = button.getBoundingClientRect();
      box.style.left = `${Math.max(8, Math.min(under.left, innerWidth - box.offsetWidth - 8))}px`;
      box.style.top = `${Math.max(8, Math.min(under.bottom + 4, innerHeight - box.offsetHeight - 8))}px`;
      (box.querySelector("input:checked") || box.querySelector("input")).focus();
    });
    buttons.push({ at, button, boxes });
    return [button, box];
  };

  bar.build = (main) => {
    const amount = amounts();
    const controls = [];
    names.forEach((name, at) => {
      if (at !== CELL && values[at].length > 1) controls.push(...panel(at, amount[at]));
    });
    field = make("input", { type: "search", placeholder: "Search all words", "aria-label": "Search in all words of the page, names of cells too", autocomplete: "off", spellcheck: "false" });
    let wait;
    field.addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(() => explore.change((state) => { state.words = explore.split(field.value); }, "words"), 120);
    });
    controls.push(field);
    clear = make("button", { type: "button", hidden: true }, "Clear");
    clear.addEventListener("click", () => {
      explore.change((state) => {
        state.chosen.forEach((chosen) => chosen.clear());
        state.words = [];
      });
      bar.complain([]);
      buttons[0]?.button.focus();
    });
    summary = make("span");
    // Apart from what is shown: a region that was hidden is not read out when it appears.
    spoken = make("p", { class: "unseen", role: "status" });
    note = make("p", { class: "filter-said", hidden: true }, summary);
    ignored = make("p", { class: "filter-ignored", role: "alert", hidden: true });
    const form = make("form", { class: "filter", role: "search", "aria-label": "Filter of all charts, tables and findings" },
      make("div", { class: "filter-controls" }, make("span", { class: "filter-word" }, "Filter"), ...controls, clear), note, spoken, ignored);
    form.addEventListener("submit", (event) => event.preventDefault());
    main.prepend(form);
  };

  const words = (state) => {
    const chosen = names.flatMap((name, at) => state.chosen[at].size
      ? [`${name} ${[...state.chosen[at]].sort((a, b) => a - b).map((value) => values[at][value]).join(" or ")}`] : []);
    if (state.words.length) chosen.push(`“${state.words.join(" ")}”`);
    return chosen.join("; ");
  };

  bar.words = () => (explore.active() ? words(explore.state()) : "");

  bar.show = (pass, counts) => {
    const state = explore.state();
    for (const { at, button, boxes } of buttons) {
      const chosen = state.chosen[at];
      button.querySelector("b").textContent = chosen.size ? ` ${chosen.size}` : "";
      button.classList.toggle("chosen", chosen.size > 0);
      for (const [box] of boxes) box.checked = chosen.has(+box.value);
    }
    if (document.activeElement !== field) field.value = state.words.join(" ");
    clear.hidden = pass === null;
    const shown = counts.map(([some, all, noun, unseen]) => `${some} of ${counted(all, noun)}${unseen ? ` (${unseen} more are not in this page)` : ""}`).join(", ");
    // Shown on paper as well: what is printed is what is filtered.
    summary.textContent = pass === null ? "" : `Filtered by ${words(state)}: ${shown}.`;
    if (pass !== null || !note.hidden) bar.say(pass === null ? "No filter: everything is shown." : `${shown} match.`);
    note.hidden = pass === null;
  };

  bar.say = (text) => { spoken.textContent = text; };

  // What a reader has to know of the way here: what the address asked for in vain, and what is hidden.
  let complaints = "";
  const joined = (list) => `${list.slice(0, 4).join("; ")}${list.length > 4 ? `, and ${list.length - 4} more` : ""}`;
  bar.complain = (list) => {
    complaints = list.length ? `Left out of the address: ${joined(list)}.` : "";
    bar.warn([]);
  };
  bar.warn = (list) => {
    ignored.textContent = `${complaints}${list.length ? ` Mind: ${joined(list)}.` : ""}`.trim();
    ignored.hidden = !ignored.textContent;
  };
})();
