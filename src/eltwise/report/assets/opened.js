/* The opened place: what one runtime does with one type of one operator version, by broadcast rule and path. */

/**
 * Fill the dialog.
 *
 * `cell` is the record to show, `cells` are all of its place, `choose` is called with another of them.
 */
function fillOpened(dialog, cell, cells, choose) {
  const runtime = cell.version ? `${cell.runtime} ${cell.version}` : cell.runtime;
  const close = element("button", { type: "button", className: "close", ariaLabel: "Close" }, "✕");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(
    element(
      "div",
      { className: "opened-head" },
      element("h2", { id: "opened-title" }, `${cell.op}, ${cell.dtype}`),
      element("p", { className: "soft" }, runtime),
      close,
    ),
    element("div", { className: "scroll" }, drawBreakdown(cell, cells, choose)),
    element("div", { className: "record", role: "status" }, ...drawRecord(cell)),
  );
}

/** Paths down, broadcast rules across; each place chooses the record below. */
function drawBreakdown(chosen, cells, choose) {
  const rules = valuesOf(cells, "broadcast");
  const head = element("tr", {}, element("th", { scope: "col" }, "path"));
  for (const rule of rules) head.append(element("th", { scope: "col" }, rule));
  const body = element("tbody");
  for (const path of valuesOf(cells, "path")) {
    const line = element("tr", {}, element("th", { scope: "row" }, path));
    for (const rule of rules) {
      const cell = cells.find((other) => other.broadcast === rule && other.path === path);
      line.append(element("td", {}, cell ? drawChoice(cell, cell === chosen, choose) : "·"));
    }
    body.append(line);
  }
  const name = "By path and broadcast rule";
  return element("table", { className: "breakdown", ariaLabel: name }, element("thead", {}, head), body);
}

function drawChoice(cell, isChosen, choose) {
  const button = element(
    "button",
    {
      type: "button",
      className: `place ${cell.verdict}`,
      ariaLabel: `${cell.broadcast}, ${cell.path}: ${cell.verdict}`,
      ariaPressed: String(isChosen),
    },
    markOf(cell.verdict),
  );
  button.addEventListener("click", () => choose(cell));
  return button;
}

function drawRecord(cell) {
  const meaning = VERDICTS[RANK.get(cell.verdict)].meaning;
  const parts = [
    element("p", { className: "path soft" }, `${cell.broadcast} broadcasting, path ${cell.path}`),
    element("p", { className: "verdict" }, badge(cell.verdict), element("span", {}, element("strong", {}, cell.verdict), `: ${meaning}`)),
  ];
  if (cell.explanation) parts.push(element("p", { className: "explanation" }, cell.explanation));
  if (cell.total > 0 && cell.verdict !== "ok") parts.push(element("p", {}, countText(cell)));
  if (cell.example) parts.push(drawExample(cell.example));
  if (cell.call) parts.push(element("p", { className: "soft call" }, cell.call));
  if (cell.message) {
    const title = cell.verdict === "refused" ? "In its own words" : "In words";
    parts.push(element("h3", {}, title), element("pre", { className: "message", tabIndex: 0 }, cell.message));
  }
  if (cell.verdict !== "ok") parts.push(...drawCommand(cell));
  return parts;
}

function countText(cell) {
  const things = cell.verdict === "differs" ? "element" : "case";
  return `${cell.wrong.toLocaleString("en")} of ${counted(cell.total, things)}.`;
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

function drawCommand(cell) {
  const command = `eltwise reproduce ${quoted(results.source)} ${quoted(keyOf(cell))} --output case/`;
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
