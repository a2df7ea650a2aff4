(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const order = ["system", "light", "dark"];
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % order.length;
    if (at) root.dataset.theme = order[at]; else delete root.dataset.theme;
    button.querySelector("span").textContent = order[at];
  });
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      const link = links.get(entry.target.id);
      link.setAttribute("aria-current", "true");
      const bar = link.closest("ol");
      bar.scrollLeft = link.offsetLeft - bar.offsetLeft - 16;
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((section) => watcher.observe(section));
})();
