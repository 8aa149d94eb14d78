// The page of a campaign: runs are chosen in the scatter or the table, loaded when they are needed, and drawn over time.
const narrowsRuns = (() => {
  const coming = new Map(); // cell -> how to hand its numbers over
  return {
    take: (cell, text) => coming.get(cell)?.(text),
    // A page that was opened as a file may load scripts, and nothing else.
    load: (cell, file) => new Promise((done, failed) => {
      coming.set(cell, (text) => done(narrowsCharts.unpack(text)));
      const script = document.createElement("script");
      script.src = file;
      script.addEventListener("error", () => failed(new Error(`${file} can't be loaded`)));
      script.addEventListener("load", () => script.remove());
      document.head.append(script);
    }),
  };
})();

window.narrowsSite = (() => {
  const numbers = JSON.parse(document.getElementById("numbers").textContent);
  const { schemes, palette } = numbers, runs = new Map(numbers.runs.map((run) => [run.cell, run]));
  const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3], [4, 2, 1, 2, 1, 2]];
  const place = document.getElementById("scatter-plot"), element = document.getElementById("overlay");
  const quantity = document.getElementById("quantity"), list = document.getElementById("chosen-runs"), status = document.getElementById("chosen");
  const boxes = new Map([...document.querySelectorAll("input[data-cell]")].map((box) => [box.dataset.cell, box]));
  const chosen = [], loaded = new Map();
  const called = (run) => `${schemes[run.scheme].name}, run ${run.run}`;
  const scatter = place ? narrowsScatter(place, numbers, toggle) : null;
  if (!element) return { scatter };
  const bar = document.createElement("div");
  bar.className = "chart-tools";
  const overlay = narrowsOverlay(element, bar);
  element.before(bar);
  let shown = "";

  async function toggle(cell) {
    const at = chosen.indexOf(cell);
    if (!runs.get(cell)?.file) return;
    if (at >= 0) chosen.splice(at, 1); else chosen.push(cell);
    await update();
  }

  let turn = 0;
  async function update() {
    const mine = ++turn;
    scatter?.choose(chosen);
    boxes.forEach((box, cell) => { box.checked = chosen.includes(cell); });
    list.replaceChildren(...chosen.map((cell) => narrowsCharts.button(called(runs.get(cell)), "take it out of the chart", () => toggle(cell))));
    status.textContent = chosen.length ? "loading" : "no run is chosen";
    try {
      for (const cell of chosen) {
        if (!loaded.has(cell)) loaded.set(cell, narrowsRuns.load(cell, runs.get(cell).file));
      }
      const found = await Promise.all(chosen.map((cell) => loaded.get(cell)));
      if (mine === turn) show(chosen.map((cell, i) => [runs.get(cell), found[i].charts[quantity.value]]));
    } catch (error) {
      chosen.forEach((cell) => loaded.get(cell)?.catch(() => loaded.delete(cell)));
      if (mine === turn) status.textContent = error.message;
    }
  }

  // Runs of different schemes have the colours of these; runs of one scheme have colours of their own. Lines of one run
  // differ by their dashes.
  function show(pairs) {
    const there = pairs.filter(([, chart]) => chart), apart = new Set(there.map(([run]) => run.scheme)).size === there.length;
    const lines = [];
    there.forEach(([run, chart], number) => {
      const look = apart ? schemes[run.scheme] : { color: palette[number % palette.length][0], dark: palette[number % palette.length][1] };
      let flow = 0;
      for (const one of chart.series) {
        if (one.kind === "area" && number > 0) continue; // the capacity, once
        const quiet = Boolean(one.dash?.length); // what was sent beside what arrived, limits
        const dash = one.kind === "area" ? [] : quiet ? one.dash : DASHES[flow++ % DASHES.length];
        const colours = one.kind === "area" ? {} : { color: look.color, dark: look.dark };
        lines.push({ label: `${called(run)}: ${one.label}`, kind: one.kind, dash, quiet, ...colours, x: chart.xs[one.x], y: one.y });
      }
    });
    const without = pairs.length - there.length;
    status.textContent = [pairs.length ? "" : "no run is chosen", without ? `${without} of the chosen runs ${without === 1 ? "has" : "have"} no such numbers` : ""].filter(Boolean).join("; ");
    overlay.set({ lines, label: there[0]?.[1].y ?? "", marks: there.flatMap(([, chart]) => chart.marks ?? []), name: quantity.value, sameAxes: shown === quantity.value });
    shown = quantity.value;
  }

  boxes.forEach((box, cell) => box.addEventListener("change", () => toggle(cell)));
  quantity.addEventListener("change", update);
  chosen.push(...numbers.first);
  update();
  return { scatter, overlay, toggle, chosen, show: (lines) => overlay.set({ marks: [], label: "", name: "chart", ...lines }) };
})();
