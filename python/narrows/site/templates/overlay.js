// Time series of chosen runs in one chart, however many points they have: for each pixel that is seen, the smallest and
// the largest value of every line, on a grid that all lines share.
function narrowsOverlay(element, bar) {
  const { align, button, keys, legend, options, pressed, quote, save, show, zoom } = narrowsCharts;
  const FEW = 4; // points per pixel, all lines together, up to which they are drawn as they are
  let plot = null, lines = [], label = "", marks = [], span = [0, 1], name = "chart";
  const hidden = new Map();

  // The first index at which times are not below a value.
  function first(x, value) {
    let low = 0, high = x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The value with which a line enters or leaves what is seen.
  function edge({ x, y, kind }, after, value) {
    if (kind === "points" || after <= 0 || after >= x.length) return undefined;
    const [before, behind] = [y[after - 1], y[after]];
    if (Number.isNaN(before) || (kind !== "step" && kind !== "area" && Number.isNaN(behind))) return undefined;
    if (kind === "step" || kind === "area") return before;
    return before + ((behind - before) * (value - x[after - 1])) / (x[after] - x[after - 1]);
  }

  function thinned(from, to, pixels) {
    const ranges = lines.map(({ x }) => [Math.max(0, first(x, from) - 1), Math.min(x.length, first(x, to) + 1)]);
    const count = ranges.reduce((sum, [start, end]) => sum + end - start, 0);
    if (count <= FEW * pixels) {
      const cut = new Map(); // lines of one run share their times
      return align(lines.map((line, k) => {
        const [start, end] = ranges[k], key = cut.get(line.x) ?? line.x.subarray(start, end);
        cut.set(line.x, key);
        return { x: key, y: line.y.subarray(start, end) };
      }));
    }
    const wide = (to - from) / pixels, grid = [from];
    for (let pixel = 0; pixel < pixels; pixel++) grid.push(from + (pixel + 0.25) * wide, from + (pixel + 0.75) * wide);
    grid.push(to);
    return [grid, ...lines.map((line) => {
      const { x, y } = line, found = new Array(grid.length), start = first(x, from), end = first(x, to);
      found[0] = edge(line, start, from);
      found[grid.length - 1] = edge(line, end, to);
      for (let i = start; i < end;) {
        const pixel = Math.min(pixels - 1, Math.floor((x[i] - from) / wide)), limit = from + (pixel + 1) * wide;
        let least = -1, most = -1, gap = false, begin = i;
        for (; i < end && (i === begin || x[i] < limit || pixel === pixels - 1); i++) {
          const value = y[i];
          if (Number.isNaN(value)) { gap = true; continue; }
          if (least < 0 || value < y[least]) least = i;
          if (most < 0 || value > y[most]) most = i;
        }
        const place = 1 + 2 * pixel;
        if (least < 0) { if (gap) found[place] = null; continue; }
        [found[place], found[place + 1]] = least <= most ? [y[least], y[most]] : [y[most], y[least]];
      }
      return found;
    })];
  }

  const ends = () => {
    const starts = lines.map(({ x }) => x[0]), last = lines.map(({ x }) => x[x.length - 1]);
    return [Math.min(...starts), Math.max(...last)];
  };
  const pixels = () => Math.max(100, Math.round((plot ? plot.bbox.width / devicePixelRatio : element.clientWidth - 60)));

  function setSpan(from, to) {
    if (!(to > from) || !plot) return;
    span = [from, to];
    plot.setData(thinned(from, to, pixels()), false);
    plot.setScale("x", { min: from, max: to });
  }

  // What lines have at the cursor, not what their pixels have.
  function told(line, at) {
    const { x, y } = line;
    let i = first(x, at);
    if (line.kind === "step" || line.kind === "area") i = i < x.length && x[i] === at ? i : i - 1;
    else if (i > 0 && (i >= x.length || at - x[i - 1] < x[i] - at)) i -= 1;
    return i >= 0 && i < x.length && !Number.isNaN(y[i]) ? y[i] : null;
  }

  function draw() {
    plot?.destroy();
    plot = null;
    if (!lines.length) { element.dataset.drawn = "0"; return; }
    const wanted = options(lines, label, marks, narrowsTheme.isDark(), { width: Math.max(280, element.clientWidth), height: 340 }, {
      cursor: { drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => setSpan(...ends()) } },
      hooks: {
        setSeries: [(one, i) => { if (i == null) return; pressed(element, one, i); hidden.set(lines[i - 1]?.label, !one.series[i].show); }],
        setSelect: [(one) => {
          const { left, width } = one.select;
          if (width < 3) return;
          const [from, to] = [one.posToVal(left, "x"), one.posToVal(left + width, "x")];
          one.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          setSpan(from, to);
        }],
      },
    });
    wanted.series.forEach((one, i) => {
      if (i === 0) return;
      one.show = !(hidden.get(lines[i - 1].label) ?? lines[i - 1].quiet);
      one.value = (it) => (it.cursor.left >= 0 ? show(told(lines[i - 1], it.posToVal(it.cursor.left, "x"))) : "–");
    });
    wanted.scales.x.range = (_, from, to) => [from, to];
    plot = new uPlot(wanted, thinned(...span, pixels()), element);
    plot.setScale("x", { min: span[0], max: span[1] });
    legend(element, plot);
    element.dataset.drawn = "1";
  }

  function saved() {
    const rows = [`series,time_s,${quote(label)}`];
    for (const line of lines) for (let i = first(line.x, span[0]); i < line.x.length && line.x[i] <= span[1]; i++) {
      rows.push(`${quote(line.label)},${line.x[i]},${Number.isNaN(line.y[i]) ? "" : +line.y[i].toPrecision(5)}`);
    }
    save(`${name}.csv`, rows);
  }

  bar.append(
    button("Zoom in", "chosen runs over time", () => plot && zoom(plot, ends(), 0.5, setSpan)),
    button("Zoom out", "chosen runs over time", () => plot && zoom(plot, ends(), 2, setSpan)),
    button("Show all", "chosen runs over time", () => plot && setSpan(...ends())),
    button("Save CSV", "what is seen of the chosen runs", saved),
  );
  keys(element, () => (plot ? { plot, ends: ends(), setSpan } : null));
  narrowsTheme.onChange(draw);
  let waiting = 0, wide = element.clientWidth;
  new ResizeObserver(() => {
    if (!element.clientWidth || element.clientWidth === wide) return;
    wide = element.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 120);
  }).observe(element);

  return {
    // Lines have label, kind, colours, times and values (typed arrays; NaN is no value).
    set(given) {
      const before = lines.length ? ends() : null, zoomed = before && (span[0] > before[0] || span[1] < before[1]);
      ({ lines, label, marks, name } = given);
      if (lines.length && !(zoomed && given.sameAxes)) span = ends();
      draw();
    },
    span: () => [...span], setSpan, draw,
    points: () => (plot ? plot.data[0].length : 0), all: () => lines.reduce((sum, { x }) => sum + x.length, 0),
    values: (number) => Array.from(plot.data[number + 1]).filter((v) => v != null),
    series: () => (plot ? plot.series.slice(1).map((one) => [one.label, one.show]) : []),
  };
}
