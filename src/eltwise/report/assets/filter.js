"use strict";
// Leaves the records that have every word of a text, and a kind; what holds one of them opens while there is a choice.
const bar = document.querySelector(".filters");
if (bar) {
  const [words, kind, count] = bar.children;
  const records = [...document.querySelectorAll(".record")];
  const contents = records.map((record) => record.textContent.toLowerCase());
  const folds = [...document.querySelectorAll("details:not(.record):has(.record)")];
  const opened = folds.map((fold) => fold.open);
  const leave = () => {
    const texts = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    records.forEach((record, index) => {
      const matches = texts.every((text) => contents[index].includes(text)) && (!kind.value || record.dataset.kind === kind.value);
      record.hidden = !matches;
      shown += matches;
    });
    folds.forEach((fold, index) => {
      const left = fold.querySelectorAll(".record:not([hidden])").length;
      fold.open = texts.length > 0 || kind.value ? left > 0 : opened[index];
    });
    count.textContent = `${shown.toLocaleString("en")} of ${records.length.toLocaleString("en")}`;
  };
  bar.hidden = false;
  words.addEventListener("input", leave);
  kind.addEventListener("change", leave);
  leave();
}

// Opens the record that the address names, and what holds it.
function openAddressed() {
  const record = document.querySelector("details:target");
  for (let fold = record; fold; fold = fold.parentElement.closest("details")) {
    fold.hidden = false;
    fold.open = true;
  }
  record?.scrollIntoView();
}
addEventListener("hashchange", openAddressed);
addEventListener("load", openAddressed);
