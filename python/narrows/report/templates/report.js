// The charts of a report: one uPlot per element of class "chart", made when it comes into view.
(() => {
  const made = new Map(); // element -> { plot, data, spec }
  let printing = false;

  const cssValue = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = () => {
    if (printing) return false;
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const show = (v) => (v == null ? "–" : Math.abs(v) >= 1000 ? v.toFixed(0) : String(+v.toPrecision(4)));

  // Series of different flows have different times; uPlot wants one common axis with gaps that are not drawn.
  function align(spec) {
    const tables = spec.xs.map((x, i) => [x, ...spec.series.filter((s) => s.x === i).map((s) => s.y)]);
    const order = spec.xs.flatMap((_, i) => spec.series.map((s, k) => [s, k]).filter(([s]) => s.x === i).map(([, k]) => k));
    const joined = tables.length === 1 ? tables[0] : uPlot.join(tables);
    const columns = [joined[0]];
    order.forEach((k, place) => { columns[k + 1] = joined[place + 1]; });
    return columns;
  }

  function nearest(plot, series, index) {
    const values = plot.data[series];
    if (values[index] != null) return index;
    for (let d = 1; d < values.length; d++) {
      if (index - d < 0 && index + d >= values.length) break;
      if (values[index - d] != null) return index - d;
      if (values[index + d] != null) return index + d;
    }
    return index;
  }

  function yRange(_, low, high) {
    if (low == null || high == null) return [0, 1];
    if (high <= 0) return [0, 1];
    const bottom = low < high / 2 ? Math.min(0, low) : low - 0.15 * (high - low + 0.01 * high);
    return [bottom, high + 0.06 * (high - bottom)];
  }

  function seriesOptions(s, color, shade) {
    const base = { label: s.label, stroke: color, width: 1.4, value: (_, v) => show(v), points: { show: false } };
    if (s.kind === "area") {
      return { ...base, stroke: "transparent", fill: shade, width: 0, paths: uPlot.paths.stepped({ align: 1 }) };
    }
    if (s.kind === "step") return { ...base, dash: s.dash, paths: uPlot.paths.stepped({ align: 1 }) };
    if (s.kind === "points") {
      return { ...base, paths: () => null, points: { show: true, size: 2.5, width: 0, fill: color + "b0", space: 0 } };
    }
    return { ...base, dash: s.dash, fill: s.fill ? color + "22" : undefined };
  }

  // Thin lines where the timeline changes something.
  function drawMarks(plot, times) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = cssValue("--muted");
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 4]);
    for (const time of times) {
      const x = Math.round(plot.valToPos(time, "x", true)) + 0.5;
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  function options(element, spec, width) {
    const night = dark();
    const ink = cssValue("--ink"), line = cssValue("--line"), muted = cssValue("--muted"), shade = cssValue("--shade");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: muted, width: 1, size: 5 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
    return {
      width, height: 220, pxAlign: 1,
      cursor: { drag: { x: true, y: false, setScale: true }, sync: { key: element.dataset.run, setSeries: false }, points: { size: 6 }, dataIdx: nearest },
      scales: { x: { time: false }, y: { range: yRange } },
      axes: [{ ...axis, label: "time since the start of the run (s)", labelSize: 18, size: 34 }, { ...axis, label: spec.y, labelSize: 20, size: 52 }],
      series: [{ label: "time", value: (_, v) => (v == null ? "–" : v.toFixed(3) + " s") }, ...spec.series.map((s) => seriesOptions(s, s.color ? (night ? s.dark : s.color) : ink, shade))],
      legend: { markers: { width: 2, dash: (_, i) => (spec.series[i - 1]?.dash?.length ? "dashed" : "solid") } },
      hooks: { setSeries: [(plot, i) => i != null && mark(element, plot, i)], setScale: [(plot, key) => key === "x" && spread(element, plot)], draw: [(plot) => drawMarks(plot, spec.marks ?? [])] },
    };
  }

  function mark(element, plot, index) {
    const row = element.querySelectorAll(".u-legend tr.u-series")[index];
    if (row && index > 0) row.setAttribute("aria-pressed", String(plot.series[index].show));
  }

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

  // Charts and table of a run as narrows.report.packed has packed them; each run is unpacked once.
  const packs = new Map(), unpacked = new Map();
  function pack(run) {
    if (!packs.has(run)) {
      const source = document.querySelector(`script[data-pack="${CSS.escape(run)}"]`);
      packs.set(run, unpack(source.textContent).then((found) => { unpacked.set(run, found); return found; }));
    }
    return packs.get(run);
  }

  async function unpack(text) {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const planes = bytes.subarray(4 + length), count = planes.length / 4, whole = new Uint8Array(4 * count);
    for (let plane = 0; plane < 4; plane++) for (let i = 0; i < count; i++) whole[4 * i + plane] = planes[plane * count + i];
    const numbers = new Float32Array(whole.buffer);
    let place = 0;
    const column = (told, gaps) => {
      if (typeof told === "object") return Array.from({ length: told.count }, (_, i) => told.start + told.step * i);
      place += told;
      const values = Array.from(numbers.subarray(place - told, place));
      return gaps ? values.map((v) => (Number.isNaN(v) ? null : +v.toPrecision(5))) : values;
    };
    for (const chart of Object.values(header.charts)) {
      chart.xs = chart.xs.map((x) => column(x, false));
      for (const series of chart.series) series.y = column(series.y, true);
    }
    return header;
  }

  function make(element) {
    if (made.has(element)) return;
    const { run, key } = element.dataset;
    if (!unpacked.has(run)) { pack(run).then(() => make(element)); return; }
    const spec = unpacked.get(run).charts[key];
    const data = align(spec);
    const entry = { spec, data, plot: null };
    made.set(element, entry);
    draw(element, entry);
    tools(element, entry);
    keys(element, entry);
  }

  function draw(element, entry) {
    const hidden = entry.plot ? entry.plot.series.map((s) => s.show === false) : [];
    if (entry.plot) entry.plot.destroy();
    const width = Math.max(280, printing ? 660 : element.clientWidth);
    entry.plot = new uPlot(options(element, entry.spec, width), entry.data, element);
    hidden.forEach((h, i) => h && i > 0 && entry.plot.setSeries(i, { show: false }));
    element.querySelectorAll(".u-legend tr.u-series").forEach((row, i) => {
      if (i === 0) return;
      row.tabIndex = 0;
      row.setAttribute("role", "button");
      row.setAttribute("aria-pressed", String(entry.plot.series[i].show !== false));
      row.setAttribute("aria-label", `show or hide ${entry.spec.series[i - 1].label}`);
      row.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        entry.plot.setSeries(i, { show: !entry.plot.series[i].show });
      });
    });
    element.dataset.drawn = "1";
  }

  function whole(entry) {
    const x = entry.data[0];
    entry.plot.setScale("x", { min: x[0], max: x[x.length - 1] });
  }

  function tools(element, entry) {
    const bar = document.createElement("div");
    bar.className = "chart-tools";
    const button = (text, label, action) => {
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = text;
      b.setAttribute("aria-label", label);
      b.addEventListener("click", action);
      bar.append(b);
    };
    const of = element.getAttribute("aria-label");
    button("Show all", `Show the whole time in ${of}`, () => whole(entry));
    button("Save CSV", `Save the numbers of ${of}`, () => save(element, entry));
    element.append(bar);
    element.setAttribute("aria-description", CHART_HELP);
  }

  function save(element, entry) {
    const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const lines = [["time_s", ...entry.spec.series.map((s) => quote(`${s.label}, ${entry.spec.y}`))].join(",")];
    for (let i = 0; i < entry.data[0].length; i++) lines.push(entry.data.map((c) => c[i] ?? "").join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = element.dataset.key.replaceAll("/", "-") + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function keys(element, entry) {
    element.addEventListener("keydown", (event) => {
      if (event.target !== element) return;
      const { plot } = entry, { min, max } = plot.scales.x, x = entry.data[0];
      const span = max - min, at = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : (min + max) / 2;
      const zoom = (factor) => {
        const half = (span * factor) / 2;
        plot.setScale("x", { min: Math.max(x[0], at - half), max: Math.min(x[x.length - 1], at + half) });
      };
      const move = (share) => {
        const to = Math.min(max, Math.max(min, at + share * span));
        plot.setCursor({ left: plot.valToPos(to, "x"), top: plot.over.clientHeight / 2 });
      };
      const actions = {
        ArrowLeft: () => move(event.shiftKey ? -0.1 : -0.01), ArrowRight: () => move(event.shiftKey ? 0.1 : 0.01),
        "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => whole(entry), Escape: () => whole(entry),
      };
      const action = actions[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
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

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => made.forEach((entry, element) => {
      if (element.clientWidth) entry.plot.setSize({ width: Math.max(280, element.clientWidth), height: 220 });
    }), 120);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    redraw();
  });
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
