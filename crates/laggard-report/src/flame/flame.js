// Zoom, search and reset for a flame graph.
function flame(svg) {
  "use strict";
  const letter = 7.25;
  const inner = Number(svg.dataset.width);
  const margin = Number(svg.dataset.margin);
  const frames = Array.from(svg.querySelectorAll("g.frames > g"), (g) => ({
    g,
    rect: g.querySelector("rect"),
    text: g.querySelector("text"),
    name: g.dataset.n,
    x: Number(g.dataset.x),
    w: Number(g.dataset.w),
    y: Number(g.querySelector("rect").getAttribute("y")),
  }));

  function label(name, width) {
    const fits = Math.floor((width - 6) / letter);
    const letters = Array.from(name);
    if (letters.length <= fits) return name;
    return fits < 3 ? "" : letters.slice(0, fits - 1).join("") + "…";
  }

  // Zooms to the range of width w that starts at x. Callers of the frame at y fill the whole width.
  function zoom(x, w, y) {
    const slack = 1e-5;
    for (const f of frames) {
      const above = f.y < y && f.x <= x + slack && f.x + f.w >= x + w - slack;
      const inside = f.y >= y && f.x >= x - slack && f.x + f.w <= x + w + slack;
      f.g.style.display = above || inside ? "" : "none";
      f.g.classList.toggle("caller", above && y > 0);
      const left = above ? 0 : (f.x - x) / w;
      const width = (above ? 1 : f.w / w) * inner;
      f.rect.setAttribute("x", margin + left * inner);
      f.rect.setAttribute("width", width);
      f.text.setAttribute("x", margin + left * inner + 3);
      f.text.textContent = label(f.name, width);
    }
  }

  function search(words) {
    const wanted = words.trim().toLowerCase();
    let found = 0;
    // The share of matching frames that are not nested in another match.
    let share = 0;
    let end = [];
    const ordered = frames.slice().sort((a, b) => a.x - b.x || a.y - b.y);
    for (const f of ordered) {
      const hit = wanted !== "" && f.name.toLowerCase().includes(wanted);
      f.g.classList.toggle("hit", hit);
      if (!hit) continue;
      found += 1;
      if (end.length === 0 || f.x >= end[0] - 1e-7) {
        share += f.w;
        end = [f.x + f.w];
      }
    }
    svg.classList.toggle("searched", wanted !== "");
    const said = wanted === "" ? "" : found + (found === 1 ? " frame, " : " frames, ") + (share * 100).toFixed(1) + " % of total";
    svg.querySelector("[data-out=found]").textContent = said;
  }

  function reset() {
    zoom(0, 1, 0);
    search("");
  }

  function ask() {
    const words = window.prompt("Search for a function");
    if (words !== null) search(words);
  }

  for (const f of frames) f.g.addEventListener("click", () => zoom(f.x, f.w, f.y));
  for (const button of svg.querySelectorAll("[data-do]")) {
    button.addEventListener("click", button.dataset.do === "reset" ? reset : ask);
  }
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") reset();
    if (event.key === "/") {
      event.preventDefault();
      ask();
    }
  });
}
