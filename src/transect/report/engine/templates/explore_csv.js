// What stands in tables as a spreadsheet takes it: numbers as numbers, nothing that would run, and what is missing named.
(() => {
  const { make, cells, study } = explore;
  const NUMBER = /^([−-]?)(?:([\d\u202f]+(?:\.\d+)?)(?:e([−+-]?\d+))?(?![\w.])|∞)/;

  // The number that a written value begins with, as other programs write it, and the rest; null where it begins with none.
  const plain = (text) => {
    const found = NUMBER.exec(text);
    if (!found) return null;
    const [whole, sign, digits, power] = found;
    const size = digits === undefined ? "Infinity" : `${digits.replaceAll("\u202f", "")}${power ? `e${power.replace("−", "-")}` : ""}`;
    return { number: `${sign ? "-" : ""}${size}`, unit: text.slice(whole.length) };
  };

  // The numbers of columns that an element has in an attribute, by the place of their column.
  const held = (element, name) => {
    const found = new Map();
    for (const column of (element.dataset[name] || "").split(";")) {
      const cut = column.indexOf(":");
      if (cut > 0) found.set(+column.slice(0, cut), column.slice(cut + 1).split(","));
    }
    return found;
  };
  const cell = (row, column) => row.row.cells[column].textContent.trim();
  const missing = (words) => words === "" || words === "–";

  // A spreadsheet runs what begins like a formula: an apostrophe makes text of all but plain numbers.
  const guarded = (words) => (!/^-?(\d+(\.\d+)?(e[+-]?\d+)?|Infinity)$/i.test(words) && /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(words) ? `'${words}` : words);
  const quoted = (words) => (/[",;\r\n\t]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);

  const written = (table, shown) => {
    table.exact ??= held(table.element, "exact");
    const ids = table.rows.some((row) => cells(row.number).length);
    const heads = table.heads.map((head) => head.textContent.trim());
    const made = heads.map((_, column) => {
      const words = shown.map((row) => cell(row, column));
      if (!table.heads[column].classList.contains("n")) return words;
      const read = words.map((word) => (missing(word) ? null : plain(word)));
      const units = new Set(read.filter(Boolean).map((value) => value.unit.trim()));
      const [unit] = units;
      // Numbers of one unit stand as numbers, with all digits that are known, and their unit in the head; two numbers
      // in one place, such as the ends of a range, stand as they are.
      if (units.size !== 1 || /\d/.test(unit)) return words.map((word) => (missing(word) ? "" : word));
      if (unit) heads[column] += ` (${unit})`;
      const exact = table.exact.get(column);
      return words.map((word, at) => (missing(word) ? "" : (exact && exact[shown[at].at]) || (read[at] ? read[at].number : word)));
    });
    heads.forEach((head, at) => { heads[at] ||= `Column ${at + 1}`; });
    if (ids) {
      heads.push("Cell id");
      made.push(shown.map((row) => cells(row.number).join(" ")));
    }
    // Two columns of one name would be one to whoever reads them by it.
    const names = heads.map((head, at) => (heads.indexOf(head) < at ? `${head} (${at + 1})` : head));
    const lines = [names, ...shown.map((_, at) => made.map((column) => column[at]))];
    return `\ufeff${lines.map((line) => line.map((text) => quoted(guarded(text))).join(",")).join("\r\n")}\r\n`;
  };

  explore.save = (blob, name) => {
    const link = make("a", { href: URL.createObjectURL(blob), download: name.replace(/[^\w.-]+/g, "-") });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };

  explore.csv = (table) => {
    const shown = [...table.body.rows].filter((row) => !row.hidden).map((row) => table.rows.find((known) => known.row === row));
    // Neither what a filter hides nor what the page has no room for is missed by whoever has only the file: its name says so.
    const all = table.rows.length + table.more;
    const part = shown.length < all ? `-${shown.length}-of-${all}-rows` : "";
    explore.save(new Blob([written(table, shown)], { type: "text/csv;charset=utf-8" }), `${study}-${table.id}${part}.csv`);
  };

  Object.assign(explore, { plain, held, cell, missing });
})();
