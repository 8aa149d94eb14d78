// The list of campaigns: filters beside the one for text, and the metric of the ranking.
(() => {
  const table = document.querySelector("table.campaigns");
  const bar = document.querySelector("#campaigns .filter");
  if (table && bar) {
    const rows = [...table.tBodies[0].rows];
    const facets = new Map(rows.map((row) => [row, JSON.parse(row.dataset.facets)]));
    const chosen = {};
    const wanted = (row) => Object.entries(chosen).every(([name, value]) => !value || facets.get(row)[name].includes(value));
    for (const name of ["plane", "scheme", "tag", "verdict"]) {
      const counts = new Map();
      rows.forEach((row) => new Set(facets.get(row)[name]).forEach((one) => counts.set(one, (counts.get(one) ?? 0) + 1)));
      if (!counts.size) continue;
      const label = document.createElement("label"), select = document.createElement("select");
      select.id = `only-${name}`;
      label.htmlFor = select.id;
      label.textContent = name;
      select.append(new Option("all", ""));
      [...counts.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).forEach((one) => select.append(new Option(`${one} (${counts.get(one)})`, one)));
      select.addEventListener("change", () => {
        chosen[name] = select.value;
        table.keeps = wanted;
        table.again();
      });
      const pair = document.createElement("span");
      pair.className = "pair";
      pair.append(label, select);
      bar.insertBefore(pair, bar.lastElementChild);
    }
  }

  const metric = document.getElementById("metric");
  const choose = () => document.querySelectorAll(".rank").forEach((one) => { one.hidden = one.id !== metric.value; });
  metric?.addEventListener("change", choose);
  if (metric) choose();
})();
