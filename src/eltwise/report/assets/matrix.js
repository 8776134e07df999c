/* The matrix: a card for each operator version, in it a line for each runtime and a column for each element type. */

/** Make an element; texts are set as text, so that nothing in the results is ever read as HTML. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function badge(outcome) {
  return element("span", { className: `badge ${outcome}`, title: outcome, ariaHidden: "true" }, markOf(outcome));
}

/**
 * Draw the matrix of the selected tests; `open` is called with the test that is to be opened.
 *
 * Returns the lines of buttons, null where a runtime has no test, for the arrow keys.
 */
function drawMatrix(place, tests, open) {
  const lines = [];
  const operators = grouped(tests);
  const cards = [];
  for (const op of results.ops.filter((name) => operators.has(name))) {
    const card = drawCard(op, operators.get(op), open);
    cards.push(card.element);
    lines.push(...card.lines);
  }
  if (cards.length === 0) cards.push(element("p", { className: "empty" }, "No test matches the filters."));
  place.replaceChildren(...cards);
  const first = lines.flat().find(Boolean);
  if (first) first.tabIndex = 0;
  return lines;
}

function drawCard(op, runtimes, open) {
  const present = new Set([...runtimes.values()].flatMap((types) => [...types.keys()]));
  const dtypes = results.dtypes.filter((name) => present.has(name));
  const names = results.runtimes.filter((name) => runtimes.has(name));
  const title = `title-${op}`;
  const head = element("tr", {}, element("th", { scope: "col", className: "corner" }, "runtime"));
  for (const dtype of dtypes) head.append(element("th", { scope: "col", className: "type" }, element("span", {}, dtype)));
  const body = element("tbody");
  const lines = [];
  for (const name of names) {
    const line = element("tr", {}, element("th", { scope: "row", title: name }, name));
    lines.push(dtypes.map((dtype) => drawPlace(line, op, name, dtype, runtimes.get(name).get(dtype), open)));
    body.append(line);
  }
  const table = element("table", { role: "grid", "aria-labelledby": title }, element("thead", {}, head), body);
  const box = element("div", { className: "scroll" }, table);
  return { element: element("section", { className: "card" }, element("h3", { id: title }, op), box), lines };
}

function drawPlace(line, op, runtime, dtype, tests, open) {
  if (!tests) {
    line.append(element("td", { role: "gridcell", className: "none" }, element("span", { ariaHidden: "true" }, "·")));
    return null;
  }
  const shown = worst(tests);
  const mixed = tests.some((test) => test.outcome !== shown.outcome);
  const label = `${runtime}, ${op}, ${dtype}: ${mixed ? tally(tests) : shown.outcome}`;
  const button = element(
    "button",
    { type: "button", tabIndex: -1, className: `place ${shown.outcome}`, ariaLabel: label, title: label },
    markOf(shown.outcome),
  );
  if (mixed) button.classList.add("mixed");
  button.addEventListener("click", () => open(shown));
  line.append(element("td", { role: "gridcell" }, button));
  return button;
}

/** Move the focus by arrow keys over the lines of all cards; places that hold nothing are passed over. */
function moveFocus(lines, event) {
  const line = lines.findIndex((buttons) => buttons.includes(document.activeElement));
  if (line < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
  const column = lines[line].indexOf(document.activeElement);
  const target = targetOf(lines, line, column, event.key);
  if (target === undefined) return;
  event.preventDefault();
  if (!target) return;
  for (const button of lines.flat()) if (button) button.tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
}

/** The button that a key leads to; null where there is none that way, undefined for a key that means nothing here. */
function targetOf(lines, line, column, key) {
  const here = lines[line];
  switch (key) {
    case "ArrowRight":
      return here.slice(column + 1).find(Boolean) ?? null;
    case "ArrowLeft":
      return here.slice(0, column).findLast(Boolean) ?? null;
    case "Home":
      return here.find(Boolean);
    case "End":
      return here.findLast(Boolean);
    case "ArrowDown":
      return nearest(lines[line + 1], column);
    case "ArrowUp":
      return nearest(lines[line - 1], column);
    default:
      return undefined;
  }
}

function nearest(buttons, column) {
  if (!buttons) return null;
  const places = buttons.map((button, place) => ({ button, distance: Math.abs(place - column) }));
  const found = places.filter((place) => place.button).sort((one, other) => one.distance - other.distance);
  return found[0].button;
}
