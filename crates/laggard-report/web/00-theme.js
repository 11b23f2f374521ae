// Chooses light or dark before the first paint, so that the page does not flash.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("laggard-theme");
  } catch {
    // A page opened from a file may have no storage. It then follows the system.
  }
  if (theme !== "dark" && theme !== "light") {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
