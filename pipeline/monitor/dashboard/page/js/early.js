// Before the page is drawn, so that the chosen theme does not flash.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // storage is forbidden: the system's theme it is
  }
  if (theme) document.documentElement.dataset.theme = theme;
})();
