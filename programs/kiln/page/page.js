// A click on a column's heading sorts its table: the largest number or the first word on top, then the reverse.
"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.textContent = "";
    head.append(button);
    const number = head.classList.contains("n");
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const down = was ? was === "ascending" : number;
      const value = row => number ? Number(row.cells[column].dataset.v) : row.cells[column].textContent;
      const order = (a, b) => number ? value(a) - value(b) : value(a).localeCompare(value(b));
      const rows = [...body.rows].sort((a, b) => down ? order(b, a) : order(a, b));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    });
  });
}
