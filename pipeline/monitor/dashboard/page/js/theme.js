// The theme: light, dark, or the system's.

import { $, h, svg } from "./dom.js";
import { isDark } from "./palette.js";

const SUN = "M12 4V2m0 20v-2m8-8h2M2 12h2m13.66-5.66 1.41-1.41M4.93 19.07l1.41-1.41m0-11.32L4.93 4.93m14.14 14.14-1.41-1.41M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z";
const MOON = "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z";

export function themeSwitch(changed) {
  const button = $("theme");
  const show = () => {
    const next = isDark() ? "light" : "dark";
    button.replaceChildren(icon(isDark() ? SUN : MOON), h("span", { class: "sr-only" }, `Use the ${next} theme`));
    button.title = `Use the ${next} theme`;
    changed();
  };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // storage is forbidden: the choice lasts as long as the page
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

function icon(path) {
  const attributes = { d: path, fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round", "stroke-linejoin": "round" };
  return svg("svg", { viewBox: "0 0 24 24", width: 18, height: 18, "aria-hidden": "true" }, svg("path", attributes));
}
