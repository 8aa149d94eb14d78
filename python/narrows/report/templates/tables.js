// Tables that sort by a click on a head and show only the rows that contain a text; and the contents, which tell
// where the reader is.
const narrowsTables = (() => {
  const ENOUGH = 6; // rows from which on a filter helps
  let count = 0;

  // What a cell says, without the small words below it and the marks of notes; or what it says to be sorted by.
  function said(cell) {
    if (cell.dataset.sort !== undefined) return cell.dataset.sort;
    const copy = cell.cloneNode(true);
    copy.querySelectorAll("small, sup, .status").forEach((one) => one.remove());
    return copy.textContent.trim();
  }
  function number(text) {
    const plain = text.replace(/[\u202f\u00a0\s]/g, "").replace("\u2212", "-");
    const found = /^[-+]?\d+(\.\d+)?/.exec(plain);
    return found ? Number(found[0]) : null;
  }
  const isAbsent = (text) => text === "" || text === "N/A" || text === "–";

  // A cell over several rows is repeated in each of them once rows part.
  function repeats(rows) {
    const found = [];
    rows.forEach((row, index) => {
      [...row.cells].forEach((cell, place) => {
        const span = cell.rowSpan;
        if (span < 2) return;
        const copies = rows.slice(index + 1, index + span).map((other) => {
          const copy = cell.cloneNode(true);
          copy.rowSpan = 1;
          copy.hidden = true;
          other.insertBefore(copy, other.cells[place] ?? null);
          return copy;
        });
        found.push({ cell, span, copies });
      });
    });
    return found;
  }

  function setUp(table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], rows = [...body.rows];
    if (rows.length < 2) return;
    const spans = repeats(rows), groups = new Set(rows.filter((row) => row.classList.contains("group")));
    const texts = rows.map((row) => [...row.cells].map(said));
    const whole = rows.map((row) => row.textContent.toLowerCase());
    let column = -1, descending = false, wanted = "", told = () => {};

    function order() {
      const places = rows.map((_, i) => i);
      if (column < 0) return places;
      const values = texts.map((row) => row[column] ?? "");
      const present = values.filter((text) => !isAbsent(text));
      const numeric = present.length > 0 && present.every((text) => number(text) !== null);
      const compare = (a, b) => (numeric ? number(values[a]) - number(values[b]) : values[a].localeCompare(values[b], "en", { numeric: true }));
      return places.sort((a, b) => {
        const none = isAbsent(values[a]) - isAbsent(values[b]); // no value comes last in either order
        return none || (isAbsent(values[a]) ? 0 : (descending ? -1 : 1) * compare(a, b)) || a - b;
      });
    }

    function show() {
      const together = column < 0 && !wanted;
      spans.forEach(({ cell, span, copies }) => {
        cell.rowSpan = together ? span : 1;
        copies.forEach((copy) => { copy.hidden = together; });
      });
      rows.forEach((row, i) => {
        row.hidden = (wanted !== "" && !whole[i].includes(wanted)) || (table.keeps?.(row) === false);
        row.classList.toggle("group", together && groups.has(row));
      });
      body.append(...order().map((i) => rows[i]));
      heads.forEach((head, i) => {
        if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      told(rows.filter((row) => !row.hidden).length);
    }

    heads.forEach((head, i) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      button.addEventListener("click", () => { // up, down, as it was
        if (column !== i) { column = i; descending = false; } else if (!descending) descending = true; else column = -1;
        show();
      });
      head.append(button);
    });

    if (rows.length < ENOUGH && !table.hasAttribute("data-filter")) return;
    const bar = document.createElement("p");
    bar.className = "filter screen-only";
    const field = document.createElement("input"), label = document.createElement("label"), status = document.createElement("span");
    field.type = "search";
    field.id = `filter-${++count}`;
    label.htmlFor = field.id;
    label.textContent = "Filter rows ";
    status.setAttribute("role", "status");
    field.setAttribute("aria-label", `Filter rows of: ${table.caption?.textContent ?? "table"}`);
    told = (left) => { status.textContent = wanted || left < rows.length ? `${left} of ${rows.length} rows` : ""; };
    field.addEventListener("input", () => { wanted = field.value.trim().toLowerCase(); show(); });
    bar.append(label, field, status);
    table.closest(".table").before(bar);
    table.again = show; // for whoever sets `table.keeps`, which says of a row whether it is wanted
  }

  const all = (root) => root.querySelectorAll(".table > table").forEach((table) => {
    if (table.dataset.ready) return;
    table.dataset.ready = "1";
    setUp(table);
  });

  // The entry of the section at the top of the window is marked.
  function follow() {
    const links = [...document.querySelectorAll("nav a[href^='#']")];
    const parts = links.map((link) => document.getElementById(link.hash.slice(1)));
    let current = -1, asked = false;
    const look = () => {
      asked = false;
      const line = document.querySelector("nav").getBoundingClientRect().bottom + 24;
      let now = parts.findLastIndex((part) => part && part.getBoundingClientRect().top <= line);
      if (innerHeight + scrollY >= document.documentElement.scrollHeight - 2) now = parts.length - 1;
      if (now === current) return;
      current = now;
      links.forEach((link, i) => (i === now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
      const list = document.querySelector("nav ol"), link = links[now];
      if (link && list.scrollWidth > list.clientWidth) list.scrollLeft = link.offsetLeft - list.clientWidth / 2 + link.offsetWidth / 2;
    };
    addEventListener("scroll", () => { if (!asked) { asked = true; requestAnimationFrame(look); } }, { passive: true });
    look();
  }

  all(document);
  follow();
  return all;
})();
