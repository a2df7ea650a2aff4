// A chart as a file: its drawing as it is shown, with title, legend, notes and filter, in the colours of white paper.
(() => {
  const { make, bar, study } = explore;
  const SVG = "http://www.w3.org/2000/svg";
  const FACE = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
  const PAD = 12;

  const drawn = (tag, attributes, ...children) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // Colours are variables that depend on the theme: a probe under the light one tells their values.
  const colours = (root) => {
    const probe = make("span", { class: "light-probe" });
    document.body.append(probe);
    const known = new Map();
    for (const element of root.querySelectorAll("[fill],[stroke]")) {
      for (const name of ["fill", "stroke"]) {
        const found = /^var\((--[a-z-]+)\)$/.exec(element.getAttribute(name) || "");
        if (!found) continue;
        if (!known.has(found[1])) {
          probe.style.color = `var(${found[1]})`;
          known.set(found[1], getComputedStyle(probe).color);
        }
        element.setAttribute(name, known.get(found[1]));
      }
    }
    probe.remove();
  };

  const pen = document.createElement("canvas").getContext("2d");
  const width = (text, size, weight = 400) => {
    pen.font = `${weight} ${size}px ${FACE}`;
    return pen.measureText(text).width;
  };
  const wrapped = (text, size, room) => {
    const lines = [""];
    for (const word of text.split(/\s+/).filter(Boolean)) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (width(longer, size) <= room || !lines.at(-1)) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines.filter(Boolean);
  };

  // Return the picture of a chart as an SVG element that stands alone.
  const picture = (chart) => {
    const figure = chart.svg.closest("figure");
    const [, , wide, high] = chart.svg.getAttribute("viewBox").split(" ").map(Number);
    const plot = chart.svg.cloneNode(true);
    for (const gone of plot.querySelectorAll(".off")) gone.remove();
    for (const faint of plot.querySelectorAll(".partly")) faint.setAttribute("opacity", "0.35");
    for (const element of [plot, ...plot.querySelectorAll("*")]) {
      for (const { name } of [...element.attributes]) {
        if (/^(class|role|tabindex|aria-.*|data-.*)$/.test(name)) element.removeAttribute(name);
      }
      if (element.tagName === "text") {
        for (const [name, value] of [["paint-order", "stroke"], ["stroke", "#ffffff"], ["stroke-width", "4"], ["stroke-linejoin", "round"]]) element.setAttribute(name, value);
      }
    }
    const inside = drawn("g", {});
    let y = PAD;
    const words = (text, size, fill, weight = 400) => {
      for (const line of wrapped(text, size, wide - 4)) {
        y += size * 1.35;
        inside.append(drawn("text", { x: 6, y, "font-size": size, "font-weight": weight, fill }, line));
      }
    };
    // What stands above the chart in the page is part of what it shows: the workload.
    let above = figure.closest("details.fold") || figure.closest(".charts");
    while (above && above.tagName !== "H3") above = above.previousElementSibling;
    const caption = figure.querySelector("figcaption").firstChild.textContent.trim();
    const title = above ? `${above.textContent.trim()}: ${caption}` : caption;
    words(title, 13, "var(--ink)", 600);
    y += 6;
    let x = 6;
    for (const item of figure.querySelectorAll(".legend li:not([hidden])")) {
      const text = item.textContent.trim();
      const room = 34 + width(text, 11) + 14;
      if (x > 6 && x + room > wide) [x, y] = [6, y + 16];
      const sample = item.querySelector("svg")?.cloneNode(true);
      if (sample) {
        for (const [name, value] of [["x", x], ["y", y]]) sample.setAttribute(name, value);
        inside.append(sample);
      }
      inside.append(drawn("text", { x: x + 34, y: y + 11, "font-size": 11, fill: "var(--muted)" }, text));
      x += room;
    }
    if (x > 6) y += 22;
    for (const [name, value] of [["x", 0], ["y", y], ["width", wide], ["height", high]]) plot.setAttribute(name, value);
    inside.append(plot);
    y += high;
    for (const note of figure.querySelectorAll(".note:not([hidden]), .source")) words(note.textContent, 10, "var(--muted)");
    if (bar.words()) words(`Filtered by ${bar.words()}.`, 10, "var(--muted)");
    const size = { width: wide + PAD, height: Math.ceil(y + PAD) };
    const root = drawn("svg", { xmlns: SVG, viewBox: `0 0 ${size.width} ${size.height}`, ...size, "font-family": FACE, fill: "none" },
      drawn("title", {}, title), drawn("desc", {}, chart.svg.getAttribute("aria-label") || ""),
      drawn("rect", { ...size, fill: "#ffffff" }), inside);
    colours(root);
    return [root, size];
  };

  const SHARP = 3;
  explore.picture = async (chart, kind) => {
    const [root, size] = picture(chart);
    // Names may hold characters that no SVG file may: controls are shown as in the page's logs.
    const text = new XMLSerializer().serializeToString(root)
      .replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0))).replace(/[\ufffe\uffff]/g, "\ufffd");
    const name = `${study}-${chart.id}`;
    if (kind === "SVG") {
      explore.save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
      return;
    }
    await png(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`, size, `${name}.png`);
  };

  const png = async (source, size, name) => {
    const image = new Image();
    image.src = source;
    try {
      await image.decode();
    } catch {
      bar.say("This browser cannot turn the drawing into a picture; take the SVG.");
      return;
    }
    const canvas = make("canvas", { width: size.width * SHARP, height: size.height * SHARP });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => explore.save(blob, name), "image/png");
  };

  // The page for a slide as a bitmap: its SVG is in the link before.
  const slide = document.querySelector(".slide a");
  if (slide) {
    const button = make("button", { type: "button", "aria-label": "Download the page for a slide as PNG" }, "PNG");
    button.addEventListener("click", () => png(slide.href, { width: 1280, height: 720 }, slide.download.replace(/svg$/, "png")));
    slide.after(" ", button);
  }
})();
