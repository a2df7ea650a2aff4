// Tables: sorted by any column, searched, shown with the ids of their cells, and handed out.
(() => {
  const { make, cell, cells, bar, short, numbers, missing } = explore;
  const tables = [];
  const byId = new Map();
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "table";
  const named = (element) => {
    const folded = element.closest("details.fold");
    const words = folded?.querySelector("summary").firstChild.textContent.trim();
    return (element.caption?.textContent || words || element.closest(".scroll")?.getAttribute("aria-label") || "").trim();
  };

  const identify = (element) => {
    const chart = element.closest(".chart[id]");
    const place = chart || element.closest("section[id]");
    const stem = chart ? `${chart.id}-numbers` : `${place ? place.id : "page"}-${slug(named(element).split(/[,;(]|\.\s/)[0])}`; // measured values stand behind the comma
    let id = stem;
    for (let n = 2; byId.has(id) || (document.getElementById(id) && document.getElementById(id) !== element); n++) id = `${stem}-${n}`;
    return id;
  };

  const take = (element) => {
    const body = element.tBodies[0];
    if (!body || !element.tHead || element.id) return;
    const id = identify(element);
    element.id = id;
    const rows = [...body.rows].map((row, at) => ({ row, at, number: row.dataset.facets === undefined ? null : +row.dataset.facets, text: null, passed: true }));
    const heads = [...element.tHead.rows[0].cells];
    const seen = new Map();
    const columns = heads.map((head, at) => {
      const stem = slug(head.textContent);
      const key = !head.textContent.trim() || seen.has(stem) ? String(at + 1) : stem;
      seen.set(stem, at);
      return key;
    });
    const table = { id, element, body, rows, heads, columns, block: element.closest("details.fold") || element.closest(".scroll") || element, about: rows.some((row) => row.number !== null), more: Number(element.dataset.more || 0), sorted: null, shown: rows.length };
    tables.push(table);
    byId.set(id, table);
  };

  // Words of two cells are two words; a number is found with and without the gaps between its thousands.
  const text = (row) => {
    if (row.text === null) {
      const words = [...row.row.cells].map((cell) => cell.textContent.trim()).join(" ").toLowerCase();
      row.text = `${words}\n${words.replaceAll("\u202f", "")}\n${words.replaceAll("\u202f", " ")}`;
    }
    return row.text;
  };

  // What a row is sorted by: its number where the column has any, else its words; null where it has nothing.
  const keyed = (table, column) => {
    const known = numbers(table)[column];
    return (row) => {
      const value = known?.[row.at + 1];
      if (typeof value === "number") return value;
      const words = cell(row, column);
      return missing(words) ? null : words;
    };
  };

  const arrange = (table, column, down) => {
    const rows = [...table.rows];
    if (column !== null) {
      const key = keyed(table, column);
      const keys = new Map(rows.map((row) => [row, key(row)]));
      const sign = down ? -1 : 1;
      rows.sort((a, b) => {
        const x = keys.get(a), y = keys.get(b);
        if (x === null || y === null) return (x === null) - (y === null) || a.at - b.at;
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
        return sign * (typeof x === "number" ? x - y : collator.compare(x, y)) || a.at - b.at;
      });
    }
    table.body.append(...rows.map((row) => row.row));
    table.heads.forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    table.sorted = column === null ? null : `${column}~${down}`;
  };

  const press = (table, column) => {
    const now = table.heads[column].getAttribute("aria-sort");
    const name = table.heads[column].textContent.trim() || `column ${column + 1}`;
    explore.change((state) => {
      if (now === "descending") state.sorts.delete(table.id);
      else state.sorts.set(table.id, [table.columns[column], now === "ascending"]);
    });
    bar.say(now === "descending" ? "In the order of the report." : `Sorted by ${name}, ${now ? "descending" : "ascending"}.`);
  };

  const showCells = (table, button) => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    for (const old of table.element.querySelectorAll(".cell-id")) old.remove();
    if (!on) return;
    table.element.tHead.rows[0].append(make("th", { scope: "col", class: "cell-id" }, "Cell id"));
    for (const { row, number } of table.rows) {
      const links = cells(number).flatMap((id) => [make("a", { href: `#${table.id}?${new URLSearchParams({ words: id })}` }, id), " "]);
      row.append(make("td", { class: "c cell-id" }, ...links));
    }
  };

  // Controls of a table come when it is near the view, or when its fold is opened.
  const equip = (table) => {
    if (table.equipped) return;
    table.equipped = true;
    const about = short(named(table.element) || "this table", 80);
    if (table.rows.length > 1) {
      table.heads.forEach((head, column) => {
        const words = [...head.childNodes];
        const button = make("button", { type: "button", class: "sort" }, ...words);
        button.addEventListener("click", () => press(table, column));
        head.append(button);
      });
    }
    const tools = make("div", { class: "tools" });
    table.status = make("span", { class: "quiet" });
    const download = make("button", { type: "button", "aria-label": `Download ${about} as CSV, as it is shown` }, "CSV");
    download.addEventListener("click", () => explore.csv(table));
    tools.append(download);
    if (table.rows.some((row) => cells(row.number).length)) {
      const button = make("button", { type: "button", "aria-pressed": "false", "aria-label": `Show the cells of ${about}` }, "Cells");
      button.addEventListener("click", () => showCells(table, button));
      tools.append(button);
    }
    tools.append(make("a", { href: `#${table.id}`, "aria-label": `Link to ${about}` }, "Link"), table.status);
    (table.element.closest(".scroll") || table.element).before(tools);
    tell(table);
  };

  const tell = (table) => {
    if (!table.status) return;
    const all = table.rows.length;
    table.status.textContent = table.shown === all ? "" : table.shown ? `${table.shown} of ${all} rows` : "No row matches";
  };

  const filter = (table, pass) => {
    table.matched = table.shown = 0;
    for (const row of table.rows) {
      row.passed = pass === null || pass(row.number, () => text(row));
      table.shown += row.passed;
      table.matched += row.passed && (row.number !== null || explore.state().words.length > 0);
      if (row.row.hidden === row.passed) row.row.hidden = !row.passed;
    }
    // A table of which nothing is left goes, its heading and tools too; one that has more rows than the page, which
    // might match, stays.
    const gone = table.shown === 0 && !table.more;
    if (table.gone !== gone) {
      table.gone = gone;
      table.block.hidden = gone;
      const tools = table.block.previousElementSibling;
      if (tools?.classList.contains("tools")) tools.hidden = gone;
      const after = table.block.nextElementSibling;
      if (after?.classList.contains("note")) after.hidden = gone;
    }
    const summary = table.block.tagName === "DETAILS" ? table.block.querySelector("summary .quiet") : null;
    if (summary) {
      const all = table.rows.length;
      summary.textContent = `${table.shown === all ? "" : `${table.shown} of `}${explore.counted(all, "row")}`;
    }
    tell(table);
  };

  let quiet = true;
  explore.parts.push({
    start() {
      document.querySelectorAll("main table:not(.decide)").forEach(take);
      const watcher = new IntersectionObserver((entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          watcher.unobserve(entry.target);
          equip(byId.get(entry.target.id));
        }
      }, { rootMargin: "60% 0px" });
      for (const table of tables) watcher.observe(table.element);
    },
    read(key, value, state) {
      if (key !== "sort") return false;
      const [id, ...parts] = value.split("~");
      const table = byId.get(id);
      if (!table) return false;
      if (parts.length !== 2 || !table.columns.includes(parts[0]) || !["up", "down"].includes(parts[1]) || table.rows.length < 2) return false;
      state.sorts.set(id, [parts[0], parts[1] === "down"]);
      return true;
    },
    apply(pass, state) {
      let shown = 0, all = 0, unseen = 0;
      const idle = quiet && pass === null;
      for (const table of tables) {
        const [key, down] = state.sorts.get(table.id) || [null, false];
        const column = key === null ? null : table.columns.indexOf(key);
        if (column !== null) equip(table);
        if (table.sorted !== (column === null ? null : `${column}~${down}`)) arrange(table, column, down);
        if (!idle) filter(table, pass);
        if (!table.about && !state.words.length) continue;
        unseen += table.more;
        all += table.rows.length;
        shown += pass === null ? table.rows.length : table.matched;
      }
      quiet = pass === null;
      return all ? [shown, all, "row", unseen] : null;
    },
  });
  Object.assign(explore, { tables: byId, equip });
})();
