"use strict";
(() => {
  document.documentElement.classList.remove("no-script");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

  // Tables: a click on a column's name sorts by it; unknown values stay at the end.
  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.v ?? cell.textContent.trim();
    const number = Number(value);
    return value === "" || value === "–" ? null : Number.isNaN(number) ? value : number;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  for (const button of all("table.sort thead button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const table = button.closest("table");
      const body = table.tBodies[0];
      const column = head.cellIndex;
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of all("th", table.tHead)) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row, place) => ({ row, place, key: key(row, column) }));
      rows.sort((a, b) => {
        if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
        return (down ? compare(b.key, a.key) : compare(a.key, b.key)) || a.place - b.place;
      });
      body.append(...rows.map((r) => r.row));
    });
  }

  const list = document.getElementById("case-list");
  if (list) {
    const cases = all(".case", list).map((node, place) => ({ node, place, text: null }));
    const field = (name) => document.getElementById(`f-${name}`);
    const names = ["text", "system", "metric", "category", "status", "sort"];
    const count = document.getElementById("case-count");
    const none = document.getElementById("case-none");
    const has = (node, name, value) => value === "" || (node.dataset[name] || "").split(" ").includes(value);
    const orders = {
      harm: (a, b) => a.place - b.place,
      weight: (a, b) => b.node.dataset.weight - a.node.dataset.weight || a.place - b.place,
      score: (a, b) => a.node.dataset.score - b.node.dataset.score || a.place - b.place,
      category: (a, b) => a.node.dataset.category - b.node.dataset.category || a.place - b.place,
      question: (a, b) => key_text(a).localeCompare(key_text(b)) || a.place - b.place,
    };
    const key_text = (item) => item.node.querySelector(".q").textContent;
    const apply = () => {
      const words = plain(field("text").value).split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const item of cases) {
        const node = item.node;
        let keep = ["system", "metric", "category", "status"].every((n) => has(node, n, field(n).value));
        if (keep && words.length) {
          item.text ??= plain(node.textContent);
          keep = words.every((word) => item.text.includes(word));
        }
        node.hidden = !keep;
        shown += keep;
      }
      count.textContent = `${shown} of ${cases.length} shown`;
      none.hidden = shown > 0;
    };
    const sort = () => list.append(...[...cases].sort(orders[field("sort").value]).map((item) => item.node));
    const reset = () => {
      for (const name of names) field(name).value = name === "sort" ? "harm" : "";
      sort();
      apply();
    };
    for (const name of names) field(name).addEventListener("input", name === "sort" ? sort : apply);
    field("reset").addEventListener("click", reset);
    document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
    for (const link of all("a[data-metric]")) {
      link.addEventListener("click", () => {
        reset();
        field("metric").value = link.dataset.metric;
        field("system").value = link.dataset.system;
        if (link.dataset.category !== undefined) field("category").value = link.dataset.category;
        apply();
      });
    }
    const follow = () => {
      const node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!node || !node.classList.contains("case")) return;
      node.hidden = false;
      node.open = true;
      node.scrollIntoView();
      node.querySelector("summary").focus({ preventScroll: true });
    };
    window.addEventListener("hashchange", follow);
    apply();
    follow();
  }

  // On paper, what is shown in the list is printed open (the first 50), and closed again afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    const listed = all(".case:not([hidden]):not([open])").slice(0, 50);
    opened = [...all("details.fine:not([open]), details.more:not([open])"), ...listed];
    for (const node of opened) node.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const node of opened) node.open = false;
  });
})();
