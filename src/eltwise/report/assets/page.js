/* The page itself: filters, the matrix, the findings, the opened test and the address. */

const byId = (id) => document.getElementById(id);
const FILTERS = [
  { field: "runtime", label: "Runtime", values: results.runtimes },
  { field: "op", label: "Operator", values: results.ops },
  { field: "dtype", label: "Type", values: results.dtypes },
  { field: "broadcast", label: "Broadcast", values: valuesOf(tests, "broadcast") },
  { field: "source", label: "Operand source", values: valuesOf(tests, "source") },
];
const selection = { runtime: "", op: "", dtype: "", broadcast: "", source: "", outcomes: new Set() };
let lines = [];

function start() {
  byId("summary").textContent = results.summary;
  for (const [name, text] of results.facts) {
    byId("facts").append(element("div", {}, element("dt", {}, name), element("dd", {}, text)));
  }
  for (const filter of FILTERS) byId("filters").append(drawFilter(filter));
  const reset = element("button", { type: "button", className: "plain" }, "Show all");
  reset.addEventListener("click", showAll);
  byId("filters").append(reset);
  for (const outcome of OUTCOMES) byId("outcomes").append(drawOutcome(outcome));
  byId("matrix").addEventListener("keydown", (event) => moveFocus(lines, event));
  byId("opened").addEventListener("close", () => setAddress(""));
  byId("opened").addEventListener("click", (event) => event.target === byId("opened") && byId("opened").close());
  window.addEventListener("hashchange", openAddress);
  draw();
  openAddress();
}

function drawFilter({ field, label, values }) {
  const select = element("select", { id: `filter-${field}` }, element("option", { value: "" }, "all"));
  for (const value of values) select.append(element("option", { value }, value));
  select.addEventListener("change", () => {
    selection[field] = select.value;
    draw();
  });
  return element("label", {}, element("span", {}, label), select);
}

function drawOutcome({ name, meaning }) {
  const count = element("span", { className: "count" });
  const button = element(
    "button",
    { type: "button", id: `outcome-${name}`, className: "toggle", ariaPressed: "false", title: meaning },
    badge(name),
    element("span", {}, name),
    count,
  );
  button.addEventListener("click", () => {
    if (!selection.outcomes.delete(name)) selection.outcomes.add(name);
    draw();
  });
  return button;
}

function showAll() {
  for (const { field } of FILTERS) {
    selection[field] = "";
    byId(`filter-${field}`).value = "";
  }
  selection.outcomes.clear();
  draw();
}

function draw() {
  const chosen = tests.filter((test) => isSelected(test, selection));
  lines = drawMatrix(byId("matrix"), chosen, open);
  drawCounts();
  drawFindings(new Set(chosen));
  byId("shown").textContent =
    chosen.length === tests.length ? counted(tests.length, "test") : `${chosen.length} of ${counted(tests.length, "test")}`;
}

/** Each outcome's number among what the other filters leave. */
function drawCounts() {
  const counts = countOutcomes(tests.filter((test) => isSelected(test, { ...selection, outcomes: new Set() })));
  for (const { name } of OUTCOMES) {
    const button = byId(`outcome-${name}`);
    button.ariaPressed = String(selection.outcomes.has(name));
    button.querySelector(".count").textContent = counts.get(name);
    button.classList.toggle("absent", counts.get(name) === 0);
  }
}

function drawFindings(chosen) {
  const found = results.findings.filter((finding) => finding.tests.some((index) => chosen.has(tests[index])));
  const items = found.map((finding) => {
    const button = element("button", { type: "button", className: "plain" }, "Open");
    button.ariaLabel = `Open ${finding.title}`;
    button.addEventListener("click", () => open(tests[finding.example]));
    const texts = finding.sentences.map((sentence) => element("p", {}, sentence));
    const head = element("h3", {}, badge(finding.outcome), element("span", {}, finding.title));
    return element("li", {}, element("div", {}, head, ...texts), button);
  });
  byId("findings").replaceChildren(...(items.length > 0 ? items : [element("li", {}, "Nothing.")]));
}

/** Show a test in the dialog, among all tests of its place, whatever the filters leave. */
function open(test) {
  const place = tests.filter((other) => PLACE.every((field) => other[field] === test[field]));
  fillOpened(byId("opened"), test, place, (other) => {
    open(other);
    byId("opened").querySelector('[aria-pressed="true"]').focus();
  });
  if (!byId("opened").open) byId("opened").showModal();
  setAddress(keyOf(test));
}

function setAddress(key) {
  history.replaceState(null, "", key ? `#${encodeURIComponent(key)}` : location.pathname + location.search);
}

/** Open the test whose key is in the address. */
function openAddress() {
  const wanted = addressed();
  if (!wanted || wanted === "matrix") return;
  const test = tests.find((other) => keyOf(other) === wanted);
  if (test) open(test);
  else byId("shown").textContent = `There is no test ${wanted} in these results.`;
}

function addressed() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1);
  }
}

start();
