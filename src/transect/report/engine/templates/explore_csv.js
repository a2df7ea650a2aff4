// What stands in tables as a spreadsheet takes it: numbers as numbers, nothing that would run, and what is missing named.
(() => {
  const { make, cells, study } = explore;
  // The numbers of columns, by their place: the unit that its title does not name, then one for each row.
  const numbers = (table) => (table.numbers ??= JSON.parse(table.element.dataset.numbers || "{}"));
  const cell = (row, column) => row.row.cells[column].textContent.trim();
  const missing = (words) => words === "" || words === "–";

  // A spreadsheet runs what begins like a formula: an apostrophe makes text of all but plain numbers.
  const guarded = (words) => (!/^-?(\d+(\.\d+)?(e[+-]?\d+)?|Infinity)$/i.test(words) && /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(words) ? `'${words}` : words);
  const quoted = (words) => (/[",;\r\n\t]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);

  const written = (table, shown) => {
    const ids = table.rows.some((row) => cells(row.number).length);
    const heads = table.heads.map((head) => head.textContent.trim());
    const made = heads.map((_, column) => {
      const [unit, ...known] = numbers(table)[column] || [null];
      if (unit) heads[column] += ` (${unit})`;
      return shown.map((row) => {
        const words = cell(row, column);
        const value = unit === null ? null : known[row.at];
        return value === null || value === undefined ? (missing(words) ? "" : words) : String(value);
      });
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

  Object.assign(explore, { numbers, cell, missing });
})();
