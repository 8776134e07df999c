/* The results, and what they say: verdicts, selection, and what stands for several cells. Nothing here draws. */

const results = JSON.parse(document.getElementById("results").textContent);
const cells = results.cells;

/** The verdicts from the best to the worst, each with the mark that says it without colour. */
const VERDICTS = results.verdicts;
const RANK = new Map(VERDICTS.map((verdict, rank) => [verdict.name, rank]));
const PLACE = ["runtime", "op", "dtype"];
const FIELDS = [...PLACE, "broadcast", "path"];

function markOf(verdict) {
  return VERDICTS[RANK.get(verdict)].mark;
}

function keyOf(cell) {
  return FIELDS.map((field) => cell[field]).join("/");
}

/** The values of a field in the order of the results. */
function valuesOf(cells, field) {
  return [...new Set(cells.map((cell) => cell[field]))];
}

/** A selection is one wanted value a field ("" for any) and the set of wanted verdicts (empty for any). */
function isSelected(cell, selection) {
  const fits = FIELDS.every((field) => !selection[field] || selection[field] === cell[field]);
  return fits && (selection.verdicts.size === 0 || selection.verdicts.has(cell.verdict));
}

function worst(cells) {
  return cells.reduce((found, cell) => (RANK.get(cell.verdict) > RANK.get(found.verdict) ? cell : found));
}

function countVerdicts(cells) {
  const counts = new Map(VERDICTS.map((verdict) => [verdict.name, 0]));
  for (const cell of cells) counts.set(cell.verdict, counts.get(cell.verdict) + 1);
  return counts;
}

/** Group cells by operator version, then runtime, then element type, each in the order of the results. */
function grouped(cells) {
  const operators = new Map();
  for (const cell of cells) {
    const runtimes = entry(operators, cell.op, () => new Map());
    const types = entry(runtimes, cell.runtime, () => new Map());
    entry(types, cell.dtype, () => []).push(cell);
  }
  return operators;
}

function entry(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function counted(count, thing) {
  return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
}

/** How many cells have each verdict, from the worst: "differs 2, ok 10". */
function tally(cells) {
  const counts = countVerdicts(cells);
  const met = VERDICTS.filter((verdict) => counts.get(verdict.name) > 0).reverse();
  return met.map((verdict) => `${verdict.name} ${counts.get(verdict.name)}`).join(", ");
}

/** A bit pattern like "0x0f" as binary digits in bytes: ["00001111"]; null where it is no such text. */
function bytesOf(bits) {
  if (!/^0x[0-9a-fA-F]{1,16}$/.test(bits)) return null;
  const digits = [...bits.slice(2)].map((digit) => parseInt(digit, 16).toString(2).padStart(4, "0")).join("");
  return digits.match(/.{1,8}(?=(.{8})*$)/g);
}
