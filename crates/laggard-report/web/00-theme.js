// Selects the theme before the first paint, so that the page does not flash.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("laggard-theme");
  } catch {
    // Pages opened from a file may have no storage. The system's preference is used then.
  }
  if (theme !== "dark" && theme !== "light") {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
