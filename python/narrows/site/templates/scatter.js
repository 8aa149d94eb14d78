// Throughput against delay: a mark per run and a larger one per scheme, as SVG, so that themes and the keyboard work
// as in the rest of the page.
function narrowsScatter(root, { schemes, runs, axes }, onRun) {
  const NS = "http://www.w3.org/2000/svg", LEFT = 58, BELOW = 46, TOP = 10, RIGHT = 14, REACH = 26;
  const { button, show } = narrowsCharts;
  const make = (name, attributes, parent, text) => {
    const one = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) {
      // The page's policy takes no style attributes.
      if (key === "style") one.style.cssText = value; else one.setAttribute(key, value);
    }
    if (text !== undefined) one.textContent = text;
    parent?.append(one);
    return one;
  };

  // Shapes of radius 1, by the letters of the figures on paper.
  const corners = (count, turn, inner) => Array.from({ length: inner ? 2 * count : count }, (_, i) => {
    const angle = (2 * Math.PI * i) / (inner ? 2 * count : count) - Math.PI / 2 + (turn * Math.PI) / 180, r = inner && i % 2 ? inner : 1.15;
    return `${(r * Math.cos(angle)).toFixed(3)},${(r * Math.sin(angle)).toFixed(3)}`;
  });
  const closed = (points) => `M${points.join("L")}Z`;
  const plus = (turn) => {
    const [c, s] = [Math.cos(turn), Math.sin(turn)], a = 0.36, b = 1.05;
    const outline = [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]];
    return closed(outline.map(([x, y]) => `${(x * c - y * s).toFixed(3)},${(x * s + y * c).toFixed(3)}`));
  };
  const SHAPES = {
    o: "M-1,0A1,1 0 1 0 1,0A1,1 0 1 0 -1,0Z", s: closed(corners(4, 45)), D: closed(corners(4, 0)), "^": closed(corners(3, 0)), v: closed(corners(3, 180)),
    "<": closed(corners(3, -90)), ">": closed(corners(3, 90)), p: closed(corners(5, 0)), h: closed(corners(6, 0)), "*": closed(corners(5, 0, 0.5)), P: plus(0), X: plus(Math.PI / 4),
  };
  const colour = (scheme) => `var(--c${scheme.color.slice(1)})`;

  // Marks in the order of the keyboard: by scheme, its median first.
  const marks = schemes.flatMap((scheme, number) => {
    const own = runs.filter((run) => run.scheme === number && run.x !== undefined);
    const middle = scheme.x === undefined ? [] : [{ number, x: scheme.x, y: scheme.y, text: `${scheme.name}, median of ${own.length} run${own.length === 1 ? "" : "s"}` }];
    return [...middle, ...own.map((run) => ({ number, run, x: run.x, y: run.y, text: `${scheme.name}, run ${run.run}${run.verdict === "degraded" ? " (degraded)" : ""}` }))];
  });
  const across = axes.log ? Math.log2 : (x) => x, back = axes.log ? (u) => 2 ** u : (u) => u;
  const ends = marks.map((mark) => across(mark.x)), low = Math.min(...ends), high = Math.max(...ends);
  const room = Math.max(0.06 * (high - low), axes.log ? 0.1 : Math.max(0.02 * Math.abs(high), 0.05));
  const whole = { x: [low - room, high + room], y: axes.upright };
  let view = whole, hidden = new Set(), current = -1, chosen = new Set(), drag = null, width = 0;
  const height = () => Math.round(Math.min(480, Math.max(300, width * 0.55)));

  const bar = document.createElement("div"), legend = document.createElement("div"), tip = document.createElement("p");
  bar.className = "scatter-bar";
  legend.className = "scatter-legend";
  tip.className = "scatter-tip";
  tip.setAttribute("role", "status");
  const svg = make("svg", { tabindex: 0, role: "application", "aria-label": "Throughput against delay: arrow keys go from mark to mark, Enter puts a run into the chart below" });
  const words = (mark) => `${mark.text}: ${show(mark.y)} Mbit/s, ${show(mark.x)} ms`;
  bar.append(button("Zoom in", "throughput against delay", () => zoom(0.5)), button("Zoom out", "throughput against delay", () => zoom(2)), button("Show all", "throughput against delay", () => look(whole)));
  root.append(bar, svg, tip, legend);

  const toX = (x) => LEFT + ((view.x[1] - across(x)) / (view.x[1] - view.x[0])) * (width - LEFT - RIGHT);
  const toY = (y) => TOP + ((view.y[1] - y) / (view.y[1] - view.y[0])) * (height() - TOP - BELOW);
  const fromX = (px) => view.x[1] - ((px - LEFT) / (width - LEFT - RIGHT)) * (view.x[1] - view.x[0]);
  const fromY = (px) => view.y[1] - ((px - TOP) / (height() - TOP - BELOW)) * (view.y[1] - view.y[0]);
  const inside = (mark) => !hidden.has(mark.number) && across(mark.x) >= view.x[0] && across(mark.x) <= view.x[1] && mark.y >= view.y[0] && mark.y <= view.y[1];

  function look(next) { view = next; draw(); }
  function zoom(factor) {
    const centre = current >= 0 && inside(marks[current]) ? { x: across(marks[current].x), y: marks[current].y } : { x: (view.x[0] + view.x[1]) / 2, y: (view.y[0] + view.y[1]) / 2 };
    const part = (key) => {
      const half = (factor * (view[key][1] - view[key][0])) / 2;
      return [Math.max(whole[key][0], centre[key] - half), Math.min(whole[key][1], centre[key] + half)];
    };
    look({ x: part("x"), y: part("y") });
  }

  function ticks(from, to) {
    const raw = (to - from) / 6, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
    return Array.from({ length: Math.floor(to / step) - Math.ceil(from / step) + 1 }, (_, i) => (Math.ceil(from / step) + i) * step);
  }
  function delayTicks() {
    const [from, to] = view.x.map(back), found = [];
    for (let power = Math.ceil(view.x[0]); axes.log && power <= view.x[1]; power++) found.push(2 ** power);
    return found.length > 2 ? found : ticks(from, to);
  }

  function draw() {
    width = Math.max(280, root.clientWidth);
    const bottom = height() - BELOW;
    svg.setAttribute("viewBox", `0 0 ${width} ${height()}`);
    svg.setAttribute("height", height());
    svg.replaceChildren();
    for (const x of delayTicks()) {
      make("line", { class: "grid", x1: toX(x), x2: toX(x), y1: TOP, y2: bottom }, svg);
      make("text", { x: toX(x), y: bottom + 16, "text-anchor": "middle" }, svg, show(x));
    }
    for (const y of ticks(...view.y)) {
      make("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: toY(y), y2: toY(y) }, svg);
      make("text", { x: LEFT - 6, y: toY(y) + 4, "text-anchor": "end" }, svg, show(y));
    }
    make("rect", { class: "frame", x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: bottom - TOP }, svg);
    make("text", { x: (LEFT + width - RIGHT) / 2, y: bottom + 36, "text-anchor": "middle" }, svg, width > 520 ? "95th percentile one-way delay (ms), smaller to the right" : "p95 one-way delay (ms), reversed");
    make("text", { transform: `translate(14 ${(TOP + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg, "throughput (Mbit/s)");
    const taken = []; // places of numbers; one that finds no room is told by the legend and at the cursor
    for (const large of [false, true]) {
      for (const mark of marks.filter((one) => !one.run === large && inside(one))) {
        const scheme = schemes[mark.number], size = large ? 7 : 4, hollow = mark.run?.verdict === "degraded";
        const at = `translate(${toX(mark.x).toFixed(1)} ${toY(mark.y).toFixed(1)})`;
        if (mark.run && chosen.has(mark.run.cell)) make("circle", { class: "chosen-mark", transform: at, r: 8 }, svg);
        const look = hollow ? `fill:var(--paper);stroke:${colour(scheme)};stroke-width:1.5` : `fill:${colour(scheme)};stroke:var(--paper);stroke-width:${large ? 1.2 : 0.6}`;
        const drawn = make("path", { d: SHAPES[scheme.marker] ?? SHAPES.o, transform: `${at} scale(${size})`, style: look, "vector-effect": "non-scaling-stroke" }, svg);
        if (mark.run) drawn.dataset.cell = mark.run.cell;
        else {
          const spots = [[9, -7], [9, 16], [-23, -7], [-23, 16]].map(([dx, dy]) => [toX(mark.x) + dx, toY(mark.y) + dy]);
          const spot = spots.find(([x, y]) => x > LEFT + 2 && x < width - RIGHT - 12 && taken.every(([a, b]) => Math.abs(a - x) > 17 || Math.abs(b - y) > 11));
          if (!spot) continue;
          taken.push(spot);
          make("text", { class: "number", x: spot[0], y: spot[1] }, svg, mark.number + 1);
        }
      }
    }
    const mark = marks[current];
    if (mark && inside(mark)) make("circle", { class: "ring", cx: toX(mark.x), cy: toY(mark.y), r: mark.run ? 8 : 11 }, svg);
    if (drag?.to) {
      const [x, y] = [0, 1].map((i) => Math.min(drag.from[i], drag.to[i]));
      make("rect", { class: "zoom", x, y, width: Math.abs(drag.to[0] - drag.from[0]), height: Math.abs(drag.to[1] - drag.from[1]) }, svg);
    }
    root.dataset.drawn = "1";
  }

  function point(index) {
    if (index === current) return;
    current = index;
    tip.textContent = index < 0 ? "" : words(marks[index]);
    draw();
  }
  function nearest([x, y], wanted = () => true) {
    let best = -1, least = REACH ** 2;
    marks.forEach((mark, i) => {
      if (!inside(mark) || !wanted(mark)) return;
      const away = (toX(mark.x) - x) ** 2 + (toY(mark.y) - y) ** 2;
      if (away < least) { least = away; best = i; }
    });
    return best;
  }
  const place = (event) => { const box = svg.getBoundingClientRect(); return [((event.clientX - box.left) * width) / box.width, event.clientY - box.top]; };
  const moved = () => drag?.to && Math.hypot(drag.to[0] - drag.from[0], drag.to[1] - drag.from[1]) > 6;

  svg.addEventListener("pointerdown", (event) => { if (event.button === 0) drag = { from: place(event) }; });
  svg.addEventListener("pointermove", (event) => {
    if (drag && event.pointerType === "mouse") {
      drag.to = place(event);
      draw();
    } else point(nearest(place(event)));
  });
  addEventListener("pointerup", (event) => {
    if (!drag) return;
    const from = drag.from, to = drag.to, was = moved();
    drag = null;
    const part = (axis, whence, key) => {
      const [low, high] = [from[axis], to[axis]].sort((a, b) => a - b);
      return high - low > 6 ? [whence(high), whence(low)] : view[key]; // along one axis only
    };
    if (was) look({ x: part(0, fromX, "x"), y: part(1, fromY, "y") });
    else if (svg.contains(event.target)) { point(nearest(from, (mark) => mark.run)); pick(); }
  });
  addEventListener("pointercancel", () => { drag = null; });
  svg.addEventListener("pointerleave", () => { if (!drag && document.activeElement !== svg) point(-1); });
  svg.addEventListener("dblclick", () => look(whole));
  function pick() { if (marks[current]?.run) onRun(marks[current].run.cell); }

  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (by) => {
      const seen = marks.map((mark, i) => [mark, i]).filter(([mark]) => inside(mark)).map(([, i]) => i);
      const at = seen.indexOf(current);
      if (seen.length) point(seen[(at < 0 ? (by > 0 ? 0 : seen.length - 1) : at + by + seen.length) % seen.length]);
    };
    const actions = {
      ArrowRight: () => step(1), ArrowDown: () => step(1), ArrowLeft: () => step(-1), ArrowUp: () => step(-1), Enter: pick, " ": pick,
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => look(whole), Escape: () => look(whole),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });

  schemes.forEach((scheme, number) => {
    if (!marks.some((mark) => mark.number === number)) return;
    const one = button(`${number + 1} ${scheme.name}`, "shown", () => {
      if (!hidden.delete(number)) hidden.add(number);
      one.setAttribute("aria-pressed", String(!hidden.has(number)));
      draw();
    });
    one.setAttribute("aria-pressed", "true");
    const sign = make("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" });
    make("path", { d: SHAPES[scheme.marker] ?? SHAPES.o, transform: "scale(6)", style: `fill:${colour(scheme)}` }, sign);
    one.prepend(sign);
    legend.append(one);
  });

  new ResizeObserver(() => { if (root.clientWidth && root.clientWidth !== width) draw(); }).observe(root);
  draw();
  return {
    choose: (cells) => { chosen = new Set(cells); draw(); },
    view: () => ({ x: view.x.map(back), y: view.y }),
    hidden: () => [...hidden].map((number) => schemes[number].name),
    at: (cell) => { const mark = marks.find((one) => one.run?.cell === cell), box = svg.getBoundingClientRect(); return [box.left + (toX(mark.x) * box.width) / width, box.top + toY(mark.y)]; },
  };
}
