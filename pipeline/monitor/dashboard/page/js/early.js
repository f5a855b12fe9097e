// Runs before the page is drawn, to apply the chosen theme without a flash of the other one.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // storage is forbidden: use the system's theme
  }
  if (theme) document.documentElement.dataset.theme = theme;
})();
