// Charts over time, as reports and sites have them: their numbers unpacked, their look, the keyboard.
const narrowsCharts = (() => {
  const TIME = "time since the start of the run (s)";
  const cssValue = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const show = (v) => (v == null ? "–" : Math.abs(v) >= 1000 ? v.toFixed(0) : String(+v.toPrecision(4)));

  // What narrows.report.packed has packed: columns are typed arrays, NaN where there is no value.
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
    const column = (told) => {
      if (typeof told === "object") return Float64Array.from({ length: told.count }, (_, i) => told.start + told.step * i);
      place += told;
      return numbers.subarray(place - told, place);
    };
    for (const chart of Object.values(header.charts)) {
      chart.xs = chart.xs.map(column);
      for (const series of chart.series) series.y = column(series.y);
    }
    return header;
  }

  // Series of different flows have different times; uPlot wants one common axis, with gaps that are not drawn.
  function align(lines) {
    const groups = new Map(); // lines by their times
    lines.forEach((line, k) => groups.set(line.x, [...(groups.get(line.x) ?? []), k]));
    const plain = (y) => Array.from(y, (v) => (Number.isNaN(v) ? null : +v.toPrecision(5)));
    const tables = [...groups].map(([x, own]) => [Array.from(x), ...own.map((k) => plain(lines[k].y))]);
    const joined = tables.length === 1 ? tables[0] : uPlot.join(tables);
    const columns = [joined[0]];
    [...groups.values()].flat().forEach((k, place) => { columns[k + 1] = joined[place + 1]; });
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

  function series(s, color, shade) {
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

  // Options of a plot of some series over time with the unit `y`; `more` are its cursor and hooks.
  function options(lines, y, marks, night, size, more) {
    const ink = cssValue("--ink"), line = cssValue("--line"), muted = cssValue("--muted"), shade = cssValue("--shade");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: muted, width: 1, size: 5 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
    return {
      ...size, pxAlign: 1,
      cursor: { points: { size: 6 }, dataIdx: nearest, ...more.cursor },
      scales: { x: { time: false }, y: { range: yRange } },
      axes: [{ ...axis, label: TIME, labelSize: 18, size: 34 }, { ...axis, label: y, labelSize: 20, size: 52 }],
      series: [{ label: "time", value: (_, v) => (v == null ? "–" : v.toFixed(3) + " s") }, ...lines.map((s) => series(s, s.color ? (night ? s.dark : s.color) : ink, shade))],
      legend: { markers: { width: 2, dash: (_, i) => (lines[i - 1]?.dash?.length ? "dashed" : "solid") } },
      hooks: { ...more.hooks, draw: [(plot) => drawMarks(plot, marks ?? [])] },
    };
  }

  // Entries of the legend can be switched with the keyboard, and tell that they can.
  function legend(element, plot) {
    element.querySelectorAll(".u-legend tr.u-series").forEach((row, i) => {
      if (i === 0) return;
      row.tabIndex = 0;
      row.setAttribute("role", "button");
      row.setAttribute("aria-pressed", String(plot.series[i].show !== false));
      row.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        plot.setSeries(i, { show: !plot.series[i].show });
      });
    });
  }

  function pressed(element, plot, index) {
    const row = element.querySelectorAll(".u-legend tr.u-series")[index];
    if (row && index > 0) row.setAttribute("aria-pressed", String(plot.series[index].show));
  }

  // Zooms to `factor` of what is seen, around the cursor, and no further than from `first` to `last`.
  function zoom(plot, [first, last], factor, setSpan) {
    const { min, max } = plot.scales.x;
    const at = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : (min + max) / 2;
    const half = ((max - min) * factor) / 2;
    setSpan(Math.max(first, at - half), Math.min(last, at + half));
  }

  // The keyboard of a chart that has the focus; `chart` tells its plot, ends and how the span that is seen is set.
  function keys(element, chart) {
    element.addEventListener("keydown", (event) => {
      const found = event.target === element && chart();
      if (!found) return;
      const { plot, ends, setSpan } = found;
      const { min, max } = plot.scales.x;
      const move = (share) => {
        const at = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : (min + max) / 2;
        const to = Math.min(max, Math.max(min, at + share * (max - min)));
        plot.setCursor({ left: plot.valToPos(to, "x"), top: plot.over.clientHeight / 2 });
      };
      const whole = () => setSpan(...ends);
      const nearer = () => zoom(plot, ends, 0.5, setSpan);
      const actions = {
        ArrowLeft: () => move(event.shiftKey ? -0.1 : -0.01), ArrowRight: () => move(event.shiftKey ? 0.1 : 0.01),
        "+": nearer, "=": nearer, "-": () => zoom(plot, ends, 2, setSpan), 0: whole, Escape: whole,
      };
      const action = actions[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
  }

  function button(text, label, action) { // the label says what it is about
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", `${text}: ${label}`); // what is seen is part of what is heard
    made.addEventListener("click", action);
    return made;
  }

  const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
  function save(name, lines) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  return { align, button, keys, legend, options, pressed, quote, save, show, unpack, zoom };
})();
