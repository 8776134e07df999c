/* The opened place: what one runtime does with one type of one operator version, by broadcast rule and source. */

/**
 * Fill the dialog.
 *
 * `test` is the record to show, `tests` are all of its place, `choose` is called with another of them.
 */
function fillOpened(dialog, test, tests, choose) {
  const runtime = test.version ? `${test.runtime} ${test.version}` : test.runtime;
  const close = element("button", { type: "button", className: "close", ariaLabel: "Close" }, "✕");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(
    element(
      "div",
      { className: "opened-head" },
      element("h2", { id: "opened-title" }, `${test.op}, ${test.dtype}`),
      element("p", { className: "soft" }, runtime),
      close,
    ),
    element("div", { className: "scroll" }, drawBreakdown(test, tests, choose)),
    element("div", { className: "record", role: "status" }, ...drawRecord(test)),
  );
}

/** Paths down, broadcast rules across; each place chooses the record below. */
function drawBreakdown(chosen, tests, choose) {
  const rules = valuesOf(tests, "broadcast");
  const head = element("tr", {}, element("th", { scope: "col" }, "source"));
  for (const rule of rules) head.append(element("th", { scope: "col" }, rule));
  const body = element("tbody");
  for (const source of valuesOf(tests, "source")) {
    const line = element("tr", {}, element("th", { scope: "row" }, source));
    for (const rule of rules) {
      const test = tests.find((other) => other.broadcast === rule && other.source === source);
      line.append(element("td", {}, test ? drawChoice(test, test === chosen, choose) : "·"));
    }
    body.append(line);
  }
  const name = "By source and broadcast rule";
  return element("table", { className: "breakdown", ariaLabel: name }, element("thead", {}, head), body);
}

function drawChoice(test, isChosen, choose) {
  const button = element(
    "button",
    {
      type: "button",
      className: `place ${test.outcome}`,
      ariaLabel: `${test.broadcast}, ${test.source}: ${test.outcome}`,
      ariaPressed: String(isChosen),
    },
    markOf(test.outcome),
  );
  button.addEventListener("click", () => choose(test));
  return button;
}

function drawRecord(test) {
  const meaning = OUTCOMES[RANK.get(test.outcome)].meaning;
  const parts = [
    element("p", { className: "source soft" }, `${test.broadcast} broadcasting, source ${test.source}`),
    element("p", { className: "outcome" }, badge(test.outcome), element("span", {}, element("strong", {}, test.outcome), `: ${meaning}`)),
  ];
  if (test.explanation) parts.push(element("p", { className: "explanation" }, test.explanation));
  if (test.total > 0 && test.outcome !== "ok") parts.push(element("p", {}, countText(test)));
  if (test.example) parts.push(drawExample(test.example));
  if (test.call) parts.push(element("p", { className: "soft call" }, test.call));
  if (test.message) {
    const title = test.outcome === "refused" ? "In its own words" : "In words";
    parts.push(element("h3", {}, title), element("pre", { className: "message", tabIndex: 0 }, test.message));
  }
  if (test.outcome !== "ok") parts.push(...drawCommand(test));
  return parts;
}

function countText(test) {
  const things = test.outcome === "differs" ? "element" : "case";
  return `${test.wrong.toLocaleString("en")} of ${counted(test.total, things)}.`;
}

/** A, B, what is exact and what came, in decimal, in hexadecimal and bit by bit. */
function drawExample(example) {
  const body = element("tbody");
  for (const [field, shown] of Object.entries(example)) {
    if (!shown) continue;
    const name = field.length === 1 ? field.toUpperCase() : field;
    const number = element("span", { className: "number" }, shown.value);
    const value = element("td", {}, number, " ", ...drawBits(shown.bits, field === "got" && example.expected));
    body.append(element("tr", { className: field }, element("th", { scope: "row" }, name), value));
  }
  const caption = element("caption", {}, "The smallest case that shows it");
  return element("div", { className: "scroll" }, element("table", { className: "example" }, caption, body));
}

/** Hexadecimal, and below it the bits, those underlined that differ from the other's. */
function drawBits(bits, other) {
  const bytes = bytesOf(bits);
  if (!bytes) return [element("span", { className: "bits" }, bits)];
  const others = other ? bytesOf(other.bits) : null;
  const binary = element("span", { className: "binary", ariaHidden: "true" });
  bytes.forEach((byte, place) => {
    const group = element("span", { className: "byte" });
    [...byte].forEach((bit, index) => {
      const differs = others && others.length === bytes.length && others[place][index] !== bit;
      group.append(differs ? element("mark", {}, bit) : bit);
    });
    binary.append(group, " ");
  });
  return [element("span", { className: "bits" }, bits), binary];
}

function drawCommand(test) {
  const command = `eltwise reproduce ${quoted(results.source)} ${quoted(keyOf(test))} --output case/`;
  const copy = element("button", { type: "button", className: "plain" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select and copy";
    }
  });
  return [
    element("h3", {}, "Reproduce it with that runtime alone"),
    element("div", { className: "command" }, element("code", { tabIndex: 0 }, command), copy),
  ];
}

/** A word for a shell. */
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
