// Charts: their marks follow the filter, tell their numbers to pointer and keyboard, and are handed out as SVG and PNG.
(() => {
  const { data, make, cells, bar, study, short } = explore;
  const charts = [];
  const NEAR = 26; // pixels from a mark within which it is meant
  const [LABEL, AT, WHAT, VALUE, LOW, HIGH, ENDS, COUNT] = [1, 2, 3, 4, 5, 6, 7, 8];
  const WORDS = ["", "Median", "Value"];

  const take = (element) => {
    const svg = element.querySelector("svg.plot");
    const spec = data.charts[element.id];
    if (svg && spec) charts.push({ id: element.id, element, svg, spec, marks: spec.marks, off: new Set() });
  };

  // The elements of each mark, found when they are first needed.
  const drawn = (chart) => {
    if (chart.elements) return;
    chart.elements = chart.marks.map(() => []);
    for (const element of chart.svg.querySelectorAll("[data-mark]")) chart.elements[+element.dataset.mark]?.push(element);
    // What stands for a mark: its symbol, which is drawn last, else its bar.
    chart.faces = chart.elements.map((elements) => elements.filter((element) => element.closest(".mark-symbol")).pop() || elements.find((element) => element.tagName !== "text") || elements[0]);
    chart.rows = chart.elements.some((elements) => elements.some((element) => element.tagName === "text"));
    const [, , width, height] = chart.svg.getAttribute("viewBox").split(" ").map(Number);
    chart.size = { width, height };
  };

  const passes = (pass, mark) => pass === null || pass(mark[0] ?? null, () => `${mark[LABEL]} ${mark[AT] ?? ""}`.toLowerCase());

  const ROW = 36;
  // Rows that stay move up to each other, and the axis with them: what sticks out above is cut off by the drawing's edge.
  const gather = (chart) => {
    const lift = (element, by) => {
      element.dataset.at ??= element.getAttribute("transform") || "";
      element.setAttribute("transform", `${by ? `translate(0,${-by}) ` : ""}${element.dataset.at}`.trim());
    };
    let gone = 0;
    chart.elements.forEach((elements, mark) => {
      if (chart.off.has(mark)) gone++;
      else for (const element of elements) lift(element, gone * ROW);
    });
    const groups = new Set([...chart.svg.querySelectorAll(".role-axis, g.role-mark")]);
    for (const group of groups) if (!group.querySelector("[data-mark]")) lift(group, gone * ROW);
    chart.svg.setAttribute("viewBox", `0 0 ${chart.size.width} ${chart.size.height - gone * ROW}`);
  };

  const filter = (chart, pass) => {
    const off = new Set();
    chart.marks.forEach((mark, at) => {
      if (!Array.isArray(mark[AT]) && !passes(pass, mark)) off.add(at);
    });
    chart.marks.forEach((mark, at) => {
      if (!Array.isArray(mark[AT])) return;
      const [first, end] = mark[AT];
      let left = 0;
      for (let part = first; part < end; part++) left += !off.has(part);
      if (!left) off.add(at);
      mark.partly = left < end - first;
    });
    const same = off.size === chart.off.size && [...off].every((at) => chart.off.has(at));
    chart.off = off;
    chart.left = counted(chart);
    if (same) return;
    drawn(chart);
    chart.elements.forEach((elements, at) => {
      for (const element of elements) {
        element.classList.toggle("off", off.has(at));
        element.classList.toggle("partly", Boolean(chart.marks[at].partly));
      }
    });
    for (const name of chart.svg.querySelectorAll("[data-line]")) name.classList.toggle("off", off.has(+name.dataset.line));
    for (const item of chart.element.querySelectorAll(".legend li")) {
      const places = chart.marks.flatMap((mark, at) => (mark[LABEL] && mark[LABEL] === item.textContent.trim() ? [at] : []));
      item.hidden = places.length > 0 && places.every((at) => off.has(at));
    }
    if (chart.rows && chart.left) gather(chart);
    roving(chart);
  };
  const points = (chart) => chart.marks.map((_, at) => at).filter((at) => !Array.isArray(chart.marks[at][AT]));
  // A bound or a reference, of which no facet is known, shows nothing of what was asked for.
  const known = (chart) => points(chart).filter((at) => typeof chart.marks[at][0] === "number");
  const counted = (chart) => {
    const told = known(chart).length ? known(chart) : points(chart);
    return told.filter((at) => !chart.off.has(at)).length;
  };

  const say = (chart) => {
    const all = points(chart).length;
    const table = explore.tables.get(`${chart.id}-numbers`);
    const nothing = all > 0 && chart.left === 0;
    const gone = nothing && (!table || !table.about || table.gone);
    chart.element.hidden = Boolean(gone);
    chart.svg.classList.toggle("off", nothing);
    if (nothing && !chart.words) {
      chart.words = make("p", { class: "note" }, "Nothing that is drawn here matches the filter; what does stands in the numbers below.");
      chart.svg.after(chart.words);
    }
    if (chart.words) chart.words.hidden = !nothing;
  };

  // ---- what a mark says ----
  const tip = make("div", { id: "tip", role: "tooltip", hidden: true });
  let open = null;

  const facts = (chart, at) => {
    const mark = chart.marks[at];
    const found = [];
    if (typeof mark[AT] === "string") found.push([chart.spec.across || "at", mark[AT]]);
    if (mark[VALUE] !== undefined && mark[VALUE] !== null) {
      found.push([WORDS[mark[WHAT] || 0] || "Value", mark[VALUE]]);
      if (mark[LOW] && mark[HIGH] && mark[LOW] !== mark[HIGH]) found.push([chart.spec.ends[mark[ENDS] || 0] || "ends", `${mark[LOW]} – ${mark[HIGH]}`]);
      if (mark[COUNT]) found.push(["n", String(mark[COUNT])]);
    } else {
      // A bar has several numbers: those of its row.
      const table = explore.tables.get(`${chart.id}-numbers`);
      const row = chart.rows && table?.rows[at];
      if (row) table.heads.forEach((head, column) => {
        const words = row.row.cells[column]?.textContent.trim();
        if (column && words) found.push([head.textContent.trim(), words]);
      });
    }
    return found;
  };
  const spoken = (chart, at) => {
    const texts = facts(chart, at).map(([name, value]) => `${name} ${value}`.trim());
    const ids = cells(chart.marks[at][0]);
    return [chart.marks[at][LABEL], ...texts, chart.marks[at][VALUE] ? chart.spec.axis : "", ids.length ? `cell ${ids.slice(0, 2).join(", ")}` : ""].filter(Boolean).join(", ");
  };

  const showTip = (chart, at) => {
    if (open?.chart === chart && open.at === at) return;
    hideTip();
    const mark = chart.marks[at];
    const list = make("dl", {}, ...facts(chart, at).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
    const ids = cells(mark[0]);
    const links = ids.slice(0, 3).map((id) => make("a", { href: explore.written({ words: [id], place: chart.id }), tabindex: "-1", title: "Show only this cell" }, id));
    tip.replaceChildren(make("p", { class: "tip-title" }, mark[LABEL] || ""), list);
    if (mark[VALUE]) tip.append(make("p", { class: "quiet" }, chart.spec.axis));
    for (const link of links) tip.append(make("p", { class: "tip-cell" }, link));
    if (ids.length > 3) tip.append(make("p", { class: "quiet" }, `and ${ids.length - 3} more cells`));
    tip.hidden = false;
    const box = chart.faces[at].getBoundingClientRect();
    const { offsetWidth: wide, offsetHeight: high } = tip;
    // Beside the mark where there is room, else below it, else above.
    const right = box.right + 12 + wide < innerWidth, left = box.left - 12 - wide > 0;
    const below = box.bottom + 10 + high < innerHeight;
    const x = right ? box.right + 12 : left ? box.left - 12 - wide : Math.min(box.left, innerWidth - wide - 8);
    const y = right || left ? Math.min(box.top - 12, innerHeight - high - 8) : below ? box.bottom + 10 : box.top - 10 - high;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${Math.max(8, y)}px`;
    for (const element of chart.elements[at]) element.classList.add("told");
    open = { chart, at };
  };
  const hideTip = () => {
    clearTimeout(leaving);
    if (!open) return;
    for (const element of open.chart.elements[open.at]) element.classList.remove("told");
    tip.hidden = true;
    open = null;
  };
  let leaving;
  const leave = () => {
    clearTimeout(leaving);
    // Long enough to move onto it: it holds links.
    leaving = setTimeout(hideTip, 250);
  };

  const meant = (chart, event) => {
    const target = event.target.closest?.("[data-mark]");
    if (target && !chart.off.has(+target.dataset.mark) && tells(chart, +target.dataset.mark)) return +target.dataset.mark;
    let best = null, least = chart.rows ? ROW : NEAR;
    for (const at of points(chart)) {
      if (chart.off.has(at) || !chart.faces[at] || !tells(chart, at)) continue;
      const box = chart.faces[at].getBoundingClientRect();
      const dy = Math.abs((box.top + box.bottom) / 2 - event.clientY), dx = Math.abs((box.left + box.right) / 2 - event.clientX);
      const far = chart.rows ? dy : Math.hypot(dx, dy);
      if (far < least) [best, least] = [at, far];
    }
    return best;
  };
  const tells = (chart, at) => Boolean(chart.marks[at][LABEL] || cells(chart.marks[at][0]).length);

  // One mark of a chart is in the order of the tab key; arrows lead to the others.
  const roving = (chart) => {
    if (!chart.ready) return;
    chart.stops = points(chart).filter((at) => chart.faces[at] && !chart.off.has(at) && tells(chart, at));
    chart.faces.forEach((face) => face?.removeAttribute("tabindex"));
    chart.stops.forEach((at, place) => chart.faces[at].setAttribute("tabindex", place ? "-1" : "0"));
  };
  const step = (chart, from, key) => {
    const stops = chart.stops, at = stops.indexOf(from), last = stops.length - 1;
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: last }[key];
    return to === undefined ? null : stops[Math.max(0, Math.min(last, to))];
  };

  const equip = (chart) => {
    if (chart.ready) return;
    chart.ready = true;
    drawn(chart);
    const { svg } = chart;
    if (points(chart).some((at) => tells(chart, at))) {
      svg.setAttribute("role", "group");
      svg.setAttribute("aria-roledescription", "chart");
      points(chart).forEach((at) => {
        const face = chart.faces[at];
        if (!face || !tells(chart, at)) return;
        face.setAttribute("role", "img");
        face.setAttribute("aria-label", spoken(chart, at));
      });
      roving(chart);
    }
    svg.addEventListener("pointermove", (event) => {
      const at = meant(chart, event);
      clearTimeout(leaving);
      if (at === null) leave();
      else showTip(chart, at);
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("focusin", (event) => {
      const at = chart.faces.indexOf(event.target);
      if (at >= 0) showTip(chart, at);
    });
    svg.addEventListener("focusout", hideTip);
    svg.addEventListener("keydown", (event) => {
      const at = chart.faces.indexOf(event.target);
      if (at < 0) return;
      const [id] = cells(chart.marks[at][0]);
      if (event.key === "Enter" && id) {
        explore.change((state) => { state.words = [id]; });
        return;
      }
      const to = step(chart, at, event.key);
      if (to === null) return;
      event.preventDefault();
      chart.faces[at].setAttribute("tabindex", "-1");
      chart.faces[to].setAttribute("tabindex", "0");
      chart.faces[to].focus();
    });
    const title = chart.svg.closest("figure").querySelector("figcaption");
    const about = short(title.textContent, 80);
    const tools = make("span", { class: "tools" });
    for (const kind of ["SVG", "PNG"]) {
      const button = make("button", { type: "button", "aria-label": `Download ${about} as ${kind}, as it is shown` }, kind);
      button.addEventListener("click", () => explore.picture(chart, kind));
      tools.append(button);
    }
    tools.append(make("a", { href: `#${chart.id}`, "aria-label": `Link to ${about}` }, "Link"));
    title.append(tools);
  };

  let quiet = true;
  explore.parts.push({
    start() {
      document.querySelectorAll(".chart[id]").forEach(take);
      document.body.append(tip);
      tip.addEventListener("pointerenter", () => clearTimeout(leaving));
      tip.addEventListener("pointerleave", leave);
      document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
      document.addEventListener("scroll", () => { if (open && !open.chart.svg.contains(document.activeElement)) hideTip(); }, { passive: true });
      const watcher = new IntersectionObserver((entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          watcher.unobserve(entry.target);
          equip(charts.find((chart) => chart.element === entry.target));
        }
      }, { rootMargin: "60% 0px" });
      for (const chart of charts) watcher.observe(chart.element);
    },
    apply(pass) {
      let shown = 0, all = 0;
      hideTip();
      for (const chart of charts) {
        if (pass !== null || !quiet) {
          filter(chart, pass);
          say(chart);
        }
        const count = (known(chart).length ? known(chart) : points(chart)).length;
        all += count;
        shown += pass === null ? count : chart.left;
      }
      if (pass !== null || !quiet) {
        for (const row of document.querySelectorAll(".charts")) {
          row.hidden = [...row.children].every((child) => child.hidden);
          if (row.parentElement.matches("details.fold")) row.parentElement.hidden = row.hidden;
        }
      }
      quiet = pass === null;
      return all ? [shown, all, "mark"] : null;
    },
  });
})();
