// Leaves the records that have a text and a kind; what holds one of them opens while there is a choice.
const bar = document.querySelector(".filters");
if (bar) {
  const [words, kind, count] = bar.children;
  const records = [...document.querySelectorAll(".record")];
  const texts = records.map((record) => record.textContent.toLowerCase());
  const folds = [...document.querySelectorAll("details:not(.record):has(.record)")];
  const opened = folds.map((fold) => fold.open);
  const leave = () => {
    const text = words.value.trim().toLowerCase();
    let shown = 0;
    records.forEach((record, index) => {
      const matches = texts[index].includes(text) && (!kind.value || record.dataset.kind === kind.value);
      record.hidden = !matches;
      shown += matches;
    });
    folds.forEach((fold, index) => {
      const left = fold.querySelectorAll(".record:not([hidden])").length;
      fold.open = text || kind.value ? left > 0 : opened[index];
    });
    count.textContent = `${shown.toLocaleString("en")} of ${records.length.toLocaleString("en")}`;
  };
  bar.hidden = false;
  words.addEventListener("input", leave);
  kind.addEventListener("change", leave);
  leave();
}
