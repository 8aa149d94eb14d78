// The charts of a report: one uPlot per element of class "chart", made when it comes into view.
(() => {
  const { align, button, keys, legend, options, pressed, quote, save, unpack } = narrowsCharts;
  const made = new Map(); // element -> { plot, data, spec, lines }
  let printing = false;

  // Charts of one run show the same span of time.
  let spreading = false;
  function spread(element, plot) {
    if (spreading) return;
    spreading = true;
    const { min, max } = plot.scales.x;
    for (const [other, entry] of made) {
      if (other !== element && other.dataset.run === element.dataset.run) entry.plot.setScale("x", { min, max });
    }
    spreading = false;
  }

  // Charts and table of a run; each run is unpacked once.
  const packs = new Map(), unpacked = new Map();
  function pack(run) {
    if (!packs.has(run)) {
      const source = document.querySelector(`script[data-pack="${CSS.escape(run)}"]`);
      packs.set(run, unpack(source.textContent).then((found) => { unpacked.set(run, found); return found; }));
    }
    return packs.get(run);
  }

  function make(element) {
    if (made.has(element)) return;
    const { run, key } = element.dataset;
    if (!unpacked.has(run)) { pack(run).then(() => make(element)); return; }
    const spec = unpacked.get(run).charts[key];
    const lines = spec.series.map((s) => ({ ...s, x: spec.xs[s.x] }));
    const entry = { spec, lines, data: align(lines), plot: null };
    made.set(element, entry);
    draw(element, entry);
    tools(element, entry);
    keys(element, () => ({ plot: entry.plot, ends: ends(entry), setSpan: (min, max) => entry.plot.setScale("x", { min, max }) }));
  }

  function draw(element, entry) {
    const hidden = entry.plot ? entry.plot.series.map((s) => s.show === false) : [];
    if (entry.plot) entry.plot.destroy();
    const width = Math.max(280, printing ? 660 : element.clientWidth);
    const wanted = options(entry.lines, entry.spec.y, entry.spec.marks, !printing && narrowsTheme.isDark(), { width, height: 220 }, {
      cursor: { drag: { x: true, y: false, setScale: true }, sync: { key: element.dataset.run, setSeries: false } },
      hooks: { setSeries: [(plot, i) => i != null && pressed(element, plot, i)], setScale: [(plot, key) => key === "x" && spread(element, plot)] },
    });
    entry.plot = new uPlot(wanted, entry.data, element);
    hidden.forEach((h, i) => h && i > 0 && entry.plot.setSeries(i, { show: false }));
    legend(element, entry.plot);
    element.dataset.drawn = "1";
  }

  const ends = ({ data: [x] }) => [x[0], x[x.length - 1]];

  function tools(element, entry) {
    const bar = document.createElement("div");
    bar.className = "chart-tools";
    const of = element.getAttribute("aria-label");
    const whole = () => { const [min, max] = ends(entry); entry.plot.setScale("x", { min, max }); };
    bar.append(
      button("Show all", of, whole),
      button("Save CSV", of, () => keep(element, entry)),
    );
    element.append(bar);
    element.setAttribute("aria-description", CHART_HELP);
  }

  function keep(element, { data, lines, spec }) {
    const rows = [["time_s", ...lines.map((s) => quote(`${s.label}, ${spec.y}`))].join(",")];
    for (let i = 0; i < data[0].length; i++) rows.push(data.map((c) => c[i] ?? "").join(","));
    save(element.dataset.key.replaceAll("/", "-") + ".csv", rows);
  }

  async function fill(element) {
    if (element.dataset.filled) return;
    element.dataset.filled = "1";
    element.innerHTML = (await pack(element.dataset.run)).table;
    narrowsTables(element);
  }
  document.querySelectorAll("details.run").forEach((run) => {
    const tables = run.querySelectorAll(".on-demand");
    run.addEventListener("toggle", () => run.open && tables.forEach(fill));
    if (run.open) tables.forEach(fill);
  });

  const charts = [...document.querySelectorAll(".chart")];
  // Printing can't wait: what is open is unpacked before.
  let ready = false;
  Promise.all([...document.querySelectorAll("details.run[open] [data-pack]")].map((one) => pack(one.dataset.pack))).then(() => { ready = true; });
  const redraw = () => made.forEach((entry, element) => draw(element, entry));
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (!one.isIntersecting) continue;
      watcher.unobserve(one.target);
      make(one.target);
    }
  }, { rootMargin: "600px" });
  charts.forEach((c) => watcher.observe(c));
  // The first one is ready before anybody gets there.
  if (charts.length && charts[0].clientWidth) (window.requestIdleCallback ?? setTimeout)(() => make(charts[0]));

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => made.forEach((entry, element) => {
      if (element.clientWidth) entry.plot.setSize({ width: Math.max(280, element.clientWidth), height: 220 });
    }), 120);
  });
  narrowsTheme.onChange(redraw);

  document.querySelectorAll(".unfold").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => document.querySelectorAll("details.run").forEach((d) => { d.open = Boolean(button.dataset.open); }));
  });
  const unfoldTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", unfoldTarget);
  unfoldTarget();

  // On paper there is no scrolling into view: everything is drawn, unfolded and light.
  addEventListener("beforeprint", () => {
    printing = true;
    charts.filter((c) => unpacked.has(c.dataset.run)).forEach(make);
    redraw();
  });
  addEventListener("afterprint", () => { printing = false; redraw(); });
  // For tests and for the curious.
  const span = (key) => { for (const [e, { plot }] of made) if (e.dataset.key === key) return [plot.scales.x.min, plot.scales.x.max]; return null; };
  window.narrowsReport = { span, isReady: () => ready, drawAll: () => charts.forEach(make), drawn: () => charts.filter((c) => c.dataset.drawn).length, total: charts.length };
})();
