/* The results, and what they say: outcomes, selection, and what stands for several tests. Nothing here draws. */

const results = JSON.parse(document.getElementById("results").textContent);
const tests = results.tests;

/** The outcomes from the best to the worst, each with the mark that says it without colour. */
const OUTCOMES = results.outcomes;
const RANK = new Map(OUTCOMES.map((outcome, rank) => [outcome.name, rank]));
const PLACE = ["runtime", "op", "dtype"];
const FIELDS = [...PLACE, "broadcast", "source"];

function markOf(outcome) {
  return OUTCOMES[RANK.get(outcome)].mark;
}

function keyOf(test) {
  return FIELDS.map((field) => test[field]).join("/");
}

/** The values of a field in the order of the results. */
function valuesOf(tests, field) {
  return [...new Set(tests.map((test) => test[field]))];
}

/** A selection is one wanted value a field ("" for any) and the set of wanted outcomes (empty for any). */
function isSelected(test, selection) {
  const fits = FIELDS.every((field) => !selection[field] || selection[field] === test[field]);
  return fits && (selection.outcomes.size === 0 || selection.outcomes.has(test.outcome));
}

function worst(tests) {
  return tests.reduce((found, test) => (RANK.get(test.outcome) > RANK.get(found.outcome) ? test : found));
}

function countOutcomes(tests) {
  const counts = new Map(OUTCOMES.map((outcome) => [outcome.name, 0]));
  for (const test of tests) counts.set(test.outcome, counts.get(test.outcome) + 1);
  return counts;
}

/** Group tests by operator version, then runtime, then element type, each in the order of the results. */
function grouped(tests) {
  const operators = new Map();
  for (const test of tests) {
    const runtimes = entry(operators, test.op, () => new Map());
    const types = entry(runtimes, test.runtime, () => new Map());
    entry(types, test.dtype, () => []).push(test);
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

/** How many tests have each outcome, from the worst: "differs 2, ok 10". */
function tally(tests) {
  const counts = countOutcomes(tests);
  const met = OUTCOMES.filter((outcome) => counts.get(outcome.name) > 0).reverse();
  return met.map((outcome) => `${outcome.name} ${counts.get(outcome.name)}`).join(", ");
}

/** A bit pattern like "0x0f" as binary digits in bytes: ["00001111"]; null where it is no such text. */
function bytesOf(bits) {
  if (!/^0x[0-9a-fA-F]{1,16}$/.test(bits)) return null;
  const digits = [...bits.slice(2)].map((digit) => parseInt(digit, 16).toString(2).padStart(4, "0")).join("");
  return digits.match(/.{1,8}(?=(.{8})*$)/g);
}
