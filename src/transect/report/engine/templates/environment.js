// Two cells side by side: the facts of machine, versions and settings in which they differ.
(() => {
  const box = document.getElementById("differ");
  if (!box) return;
  const most = 200;
  const status = document.getElementById("differ-said");
  const place = document.getElementById("differ-facts");
  const equal = document.getElementById("differ-equal");
  const sides = ["a", "b"].map((name) => ({
    find: document.getElementById(`differ-find-${name}`),
    list: document.getElementById(`differ-${name}`),
  }));
  let content = null;

  async function unpack() {
    const bytes = Uint8Array.from(atob(box.dataset.facts), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  const at = (facts, cell) => (facts.at ? facts.at[cell] : 0);

  // All facts of a cell: "group \u0000 fact" to value. What is told twice stands under one name once.
  function factsOf(cell) {
    const facts = new Map();
    for (const column of content.columns) {
      const value = column.values[at(column, cell)];
      if (value !== null) facts.set(`${column.group}\u0000${column.fact}`, value);
    }
    for (const set of content.sets) {
      for (const [group, fact, value] of set.facts[at(set, cell)]) {
        const key = `${group}\u0000${fact}`;
        if (!facts.has(key)) facts.set(key, value);
      }
    }
    return facts;
  }

  function offer(side) {
    // What is typed while the facts unpack is looked for when they are there.
    if (!content) return;
    const words = side.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = side.list.value;
    const found = [];
    let more = 0;
    content.cells.forEach((name, cell) => {
      const low = name.toLowerCase();
      if (!words.every((word) => low.includes(word))) return;
      if (found.length < most) found.push([name, cell]); else more += 1;
    });
    const options = found.map(([name, cell]) => new Option(name, String(cell)));
    if (more) {
      const hint = new Option(`${more} more: type a part of the name`, "");
      hint.disabled = true;
      options.push(hint);
    }
    side.list.replaceChildren(...options);
    if (found.some(([, cell]) => String(cell) === chosen)) side.list.value = chosen;
    if (!found.length) status.textContent = "No cell has these words in its name.";
  }

  function row(tag, texts, heads) {
    const line = document.createElement("tr");
    texts.forEach((text, column) => {
      const cell = document.createElement(column === 0 && heads ? "th" : tag);
      if (tag === "th") cell.scope = "col"; else if (column === 0 && heads) cell.scope = "row";
      cell.textContent = text;
      line.append(cell);
    });
    return line;
  }

  function show() {
    const [first, second] = sides.map((side) => (side.list.value === "" ? null : Number(side.list.value)));
    place.replaceChildren();
    if (first === null || second === null) return;
    const left = factsOf(first);
    const right = factsOf(second);
    const keys = [...new Set([...left.keys(), ...right.keys()])];
    const order = ["Result", "Machine", "Versions", "Settings"];
    keys.sort((a, b) => order.indexOf(a.split("\u0000")[0]) - order.indexOf(b.split("\u0000")[0]) || (a < b ? -1 : 1));
    const differs = (key) => left.get(key) !== right.get(key);
    const different = keys.filter(differs);
    status.textContent = different.length
      ? `${different.length} of ${keys.length} facts differ.`
      : `All ${keys.length} facts are the same${first === second ? ": it is one cell" : ""}.`;
    const rows = equal.checked ? keys : different;
    if (!rows.length) return;
    const table = document.createElement("table");
    const head = table.createTHead();
    head.append(row("th", ["Fact", content.cells[first], content.cells[second]], false));
    let body = null;
    let before = "";
    for (const key of rows) {
      const [group, fact] = key.split("\u0000");
      if (group !== before) {
        body = table.createTBody();
        const line = row("th", [group], true);
        line.firstChild.colSpan = 3;
        line.firstChild.scope = "rowgroup";
        body.append(line);
        before = group;
      }
      const line = row("td", [fact, left.get(key) ?? "–", right.get(key) ?? "–"], true);
      if (differs(key)) line.className = "differs";
      body.append(line);
    }
    place.append(table);
  }

  async function begin() {
    if (content) return;
    try {
      content = await unpack();
    } catch (error) {
      status.textContent = `The facts cannot be read: ${error}`;
      return;
    }
    // Two cells of one kind that differ, so that there is something to see: the ends of the largest stage.
    const amounts = new Map();
    for (const name of content.cells) {
      const stage = name.split("/")[0];
      amounts.set(stage, (amounts.get(stage) ?? 0) + 1);
    }
    const largest = [...amounts].sort((a, b) => b[1] - a[1])[0];
    for (const side of sides) {
      if (amounts.size > 1) side.find.value = `${largest[0]}/`;
      offer(side);
    }
    const offered = [...sides[1].list.options].filter((option) => !option.disabled);
    if (offered.length) sides[1].list.value = offered[offered.length - 1].value;
    show();
  }

  box.hidden = false;
  if (!("DecompressionStream" in window)) {
    status.textContent = "This browser cannot unpack the facts: it is older than 2023.";
    return;
  }
  box.addEventListener("toggle", begin);
  equal.addEventListener("change", show);
  for (const side of sides) {
    side.find.addEventListener("input", () => { offer(side); show(); });
    side.list.addEventListener("change", show);
  }
})();
