// Builds elements. Values from topics are inserted as text, never as HTML.

export const $ = (id) => document.getElementById(id);

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  set(element, properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-")) element[name] = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Copies the page's address, and says on the button whether that worked. */
export async function copyAddress(button) {
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy it from the address bar";
  }
}

export function options(select, values, chosen, name = String) {
  const key = JSON.stringify(values.map((value) => [value, name(value)]));
  if (select.dataset.values !== key) {
    select.dataset.values = key;
    select.replaceChildren(...values.map((v) => h("option", { value: String(v) }, name(v))));
  }
  select.value = String(chosen);
}

export function segments(fieldset, name, choices, chosen, choose) {
  const key = JSON.stringify(choices);
  if (fieldset.dataset.values !== key) {
    fieldset.dataset.values = key;
    const legend = fieldset.querySelector("legend");
    fieldset.replaceChildren(legend, ...choices.map(({ value, text, disabled, title }) => h(
      "label", title ? { title } : {},
      h("input", { type: "radio", name, value, disabled: Boolean(disabled), onchange: () => choose(value) }),
      h("span", {}, text),
    )));
  }
  for (const input of fieldset.querySelectorAll("input")) input.checked = input.value === String(chosen);
}

export function table(caption, columns, rows) {
  return h(
    "table", {},
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, ...columns.map((c) => h("th", { scope: "col" }, c)))),
    h("tbody", {}, ...rows.map(([first, ...rest]) => h(
      "tr", {}, h("th", { scope: "row" }, first), ...rest.map((cell) => h("td", {}, cell)),
    ))),
  );
}
