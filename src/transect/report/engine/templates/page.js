const page = (() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const order = ["system", "light", "dark"];
  let at = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    at = (at + 1) % order.length;
    if (at) root.dataset.theme = order[at]; else delete root.dataset.theme;
    button.querySelector("span").textContent = order[at];
  });

  // Opens whatever folds an element away, and the section that it is.
  const reveal = (target) => {
    const part = target.matches("main > section") && target.querySelector(":scope > details");
    if (part) part.open = true;
    const proof = target.querySelector(":scope > div > details.proof");
    if (proof) proof.open = true;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  };
  const follow = () => {
    let name = "";
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = name && document.getElementById(name);
    if (!target) return;
    reveal(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  // The same link again changes no hash, and opens again what was closed meanwhile.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) follow();
  });
  follow();

  const folds = () => document.querySelectorAll("details.part");
  const unfold = document.getElementById("unfold");
  unfold.hidden = false;
  unfold.addEventListener("click", () => {
    const open = unfold.getAttribute("aria-pressed") !== "true";
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Fold all" : "Unfold all";
    for (const fold of folds()) fold.open = open;
  });

  // On paper: what a reader has opened as it is, of all other sections their charts and findings.
  addEventListener("beforeprint", () => {
    for (const fold of folds()) if (!fold.open) fold.open = fold.classList.toggle("unasked", true);
  });
  addEventListener("afterprint", () => {
    for (const fold of folds()) if (fold.classList.contains("unasked")) fold.open = fold.classList.toggle("unasked", false);
  });

  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      const link = links.get(entry.target.id);
      if (!link) continue;
      for (const other of links.values()) other.removeAttribute("aria-current");
      link.setAttribute("aria-current", "true");
      const bar = link.closest("ol");
      bar.scrollLeft = link.offsetLeft - bar.offsetLeft - 16;
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((section) => watcher.observe(section));

  return { reveal };
})();
