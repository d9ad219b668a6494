"use strict";
// Search fields over rows of tables or findings, and everything opened for the printer. The page can be read without this.
(function () {
  for (const box of document.querySelectorAll("[data-search]")) {
    const field = document.createElement("input");
    const count = document.createElement("output");
    const label = document.createElement("label");
    field.type = "search";
    label.textContent = box.dataset.search + " ";
    label.append(field);
    box.prepend(label, count);
    const unit = box.querySelector(".finding") ? ".finding" : "tbody tr";
    const rows = Array.from(box.querySelectorAll(unit));
    const folds = Array.from(box.querySelectorAll("details")).filter((fold) => fold.querySelector(unit));
    let wait = 0;
    field.addEventListener("input", function () {
      clearTimeout(wait);
      wait = setTimeout(function () {
        const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
        let shown = 0;
        for (const row of rows) {
          const text = row.textContent.toLowerCase();
          const hit = words.every((word) => text.includes(word));
          row.hidden = !hit;
          if (hit) shown += 1;
        }
        for (const fold of folds) {
          const any = fold.querySelector(unit + ":not([hidden])") !== null;
          fold.hidden = !any;
          if (words.length > 0 && any) fold.open = true;
        }
        count.textContent = words.length > 0 ? " " + shown + " of " + rows.length : "";
      }, 120);
    });
  }
  // Long tables and listings would be hundreds of sheets.
  const isLong = (fold) => fold.querySelectorAll("tr").length >= 200 || fold.textContent.split("\n").length > 1000;
  let closed = [];
  addEventListener("beforeprint", function () {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    for (const fold of closed) if (!isLong(fold)) fold.open = true;
  });
  addEventListener("afterprint", function () {
    for (const fold of closed) fold.open = false;
  });
})();
