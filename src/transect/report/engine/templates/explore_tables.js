// Tables: sorted by any column, searched, shown with the ids of their cells, and handed out.
(() => {
  const { make, cell, cells, bar, short, held, plain, missing } = explore;
  const tables = [];
  const byId = new Map();
  const SEARCHED = 8; // rows from which on a table can be searched
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
    const rows = [...body.rows].map((row, at) => ({ row, at, number: row.dataset.facets === undefined ? null : +row.dataset.facets, text: null, found: true, passed: true }));
    const heads = [...element.tHead.rows[0].cells];
    const seen = new Map();
    const columns = heads.map((head, at) => {
      const stem = slug(head.textContent);
      const key = !head.textContent.trim() || seen.has(stem) ? String(at + 1) : stem;
      seen.set(stem, at);
      return key;
    });
    const table = { id, element, body, rows, heads, columns, block: element.closest("details.fold") || element.closest(".scroll") || element, about: rows.some((row) => row.number !== null), more: Number(element.dataset.more || 0), sorted: null, find: "" };
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
    table.exact ??= held(table.element, "exact");
    table.order ??= held(table.element, "order");
    const numbers = table.exact.get(column) || table.order.get(column);
    const numeric = table.heads[column].classList.contains("n");
    return (row) => {
      if (numbers && numbers[row.at] !== undefined && numbers[row.at] !== "") return +numbers[row.at];
      const words = cell(row, column);
      if (missing(words)) return null;
      const read = numeric ? plain(words) : null;
      return read ? +read.number : words;
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
      const links = cells(number).flatMap((id) => [make("a", { href: `#${table.id}?${new URLSearchParams({ cell: id })}` }, id), " "]);
      row.append(make("td", { class: "c cell-id" }, ...links));
    }
  };

  // Controls of a table come when it is near the view, or when its fold is opened.
  const equip = (table) => {
    if (table.equipped) return;
    table.equipped = true;
    const title = table.element.closest(".chart")?.querySelector("figcaption")?.firstChild.textContent.trim();
    const about = short([title, named(table.element) || "this table"].filter(Boolean).join(": "), 80);
    if (table.rows.length > 1) {
      table.heads.forEach((head, column) => {
        const words = [...head.childNodes];
        const button = make("button", { type: "button", class: "sort" }, ...words);
        if (!button.textContent.trim()) button.setAttribute("aria-label", `Column ${column + 1}`);
        button.addEventListener("click", () => press(table, column));
        head.append(button);
      });
    }
    const tools = make("div", { class: "tools" });
    if (table.rows.length >= SEARCHED) {
      const field = make("input", { type: "search", placeholder: "Search", "aria-label": `Search in ${about}`, autocomplete: "off", spellcheck: "false" });
      field.value = table.find;
      let wait;
      field.addEventListener("input", () => {
        clearTimeout(wait);
        wait = setTimeout(() => {
          explore.change((state) => {
            const wanted = field.value.trim().slice(0, explore.LONGEST);
            if (wanted) state.finds.set(table.id, wanted);
            else state.finds.delete(table.id);
          }, table.id);
          const left = table.rows.filter((row) => row.found && row.passed).length;
          bar.say(`${left} of ${table.rows.length} rows match.`);
        }, 120);
      });
      table.field = field;
      tools.append(field);
    }
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
    const shown = table.rows.filter((row) => row.found && row.passed).length;
    const all = table.rows.length;
    table.status.textContent = shown === all ? "" : shown ? `${shown} of ${all} rows` : table.find ? `No row has “${short(table.find)}”` : "No row matches the filter";
    if (table.field && document.activeElement !== table.field) table.field.value = table.find;
  };

  const filter = (table, pass, find) => {
    const searched = find !== table.find;
    table.find = find;
    const wanted = find.toLowerCase();
    let passed = 0;
    for (const row of table.rows) {
      if (searched) row.found = wanted === "" || text(row).includes(wanted) || cells(row.number).some((id) => id.toLowerCase().includes(wanted));
      row.passed = pass === null || row.number === null || pass[row.number] === 1;
      passed += row.passed;
      const hidden = !(row.found && row.passed);
      if (row.row.hidden !== hidden) row.row.hidden = hidden;
    }
    table.passed = passed;
    // A table of which nothing is left goes, its heading and tools too; one that was searched in vain stays, and one
    // that has more rows than the page, which might match.
    const gone = table.about && passed === 0 && !table.more;
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
      summary.textContent = `${passed === all ? "" : `${passed} of `}${explore.counted(all, "row")}`;
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
      if (key !== "sort" && key !== "find") return false;
      const [id, ...parts] = value.split("~");
      const table = byId.get(id);
      if (!table) return false;
      if (key === "find") {
        const wanted = parts.join("~");
        if (!wanted || wanted.length > explore.LONGEST || table.rows.length < SEARCHED) return false;
        state.finds.set(id, wanted);
        return true;
      }
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
        const find = state.finds.get(table.id) || "";
        if (!idle || find !== table.find) filter(table, pass, find);
        if (!table.about) continue;
        unseen += table.more;
        all += table.rows.length;
        shown += pass === null ? table.rows.length : table.passed;
      }
      quiet = pass === null;
      return all ? [shown, all, "row", unseen] : null;
    },
  });
  explore.tables = byId;
})();
