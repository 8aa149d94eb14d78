// The page of a run that is under way: readings arrive as server-sent events, at most a few per second.
(() => {
  const { align, options } = narrowsCharts;
  const MOST = 1500, HEIGHT = 200; // readings that are shown: five minutes of five per second
  const LIGHT = ["#0067a5", "#c44601", "#00795c", "#8d4f9f", "#c78200", "#a3123a"];
  const DARK = ["#4ea6e0", "#f0733a", "#20b58d", "#c58ad6", "#f3b13c", "#ee6a8b"];
  const DASHES = [[], [6, 2], [2, 1.5], [7, 2, 1.5, 2]];
  const place = (id) => document.getElementById(id);
  let run = null, readings = [], marks = [], over = false;

  const share = (value, unit, digits) => (value == null ? "–" : (value / unit).toFixed(digits));
  const ofFlows = (member, unit) => () => {
    const last = readings[readings.length - 1];
    return last.flows.slice(0, 12).map(({ flow }, k) => ({
      label: `${flow} ${run.flows[flow] ?? ""}`,
      y: readings.map((reading) => { const value = reading.flows[k]?.[member]; return value == null ? NaN : value / unit; }),
    }));
  };
  const ofQueues = () => {
    const last = readings[readings.length - 1];
    return last.queues.slice(0, 8).map(({ element }, k) => ({
      label: element, y: readings.map((reading) => (reading.queues[k]?.queued_bytes ?? NaN) / 1e3),
    }));
  };
  const charts = [
    { id: "throughput", unit: "Mbit/s", lines: ofFlows("throughput_bps", 1e6) },
    { id: "queueing", unit: "ms", lines: ofFlows("queueing_ns", 1e6) },
    { id: "window", unit: "kB", lines: ofFlows("cwnd_bytes", 1e3) },
    { id: "queue", unit: "kB", lines: ofQueues },
  ].map((chart) => ({ ...chart, plot: null, names: "" }));

  function lines(chart) {
    const x = readings.map((reading) => reading.time_ns / 1e9);
    return chart.lines().map((line, k) => ({
      ...line, x, kind: "line", color: LIGHT[k % LIGHT.length], dark: DARK[k % DARK.length],
      dash: DASHES[Math.floor(k / LIGHT.length) % DASHES.length],
    }));
  }

  function draw(chart, anew) {
    const element = place(chart.id), own = lines(chart), names = own.map((line) => line.label).join("\n");
    const size = { width: Math.max(260, element.clientWidth), height: HEIGHT };
    if (!own.length) return;
    if (chart.plot && !anew && names === chart.names) {
      chart.plot.setData(align(own));
      return;
    }
    chart.plot?.destroy();
    chart.names = names;
    const wanted = options(own, chart.unit, marks, narrowsTheme.isDark(), size, { cursor: { drag: { x: false, y: false } } });
    wanted.axes[0].label = "time (s)";
    chart.plot = new uPlot(wanted, align(own), element);
    element.dataset.drawn = "1";
  }

  function fill(table, rows) {
    place(table).tBodies[0].replaceChildren(...rows.map(([name, ...cells]) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = name;
      row.append(head, ...cells.map((text) => {
        const cell = document.createElement("td");
        cell.className = "right";
        cell.textContent = text;
        return cell;
      }));
      return row;
    }));
  }

  function tables() {
    const { flows, queues } = readings[readings.length - 1];
    fill("flows", flows.map((flow) => [
      `${flow.flow} ${run.flows[flow.flow] ?? ""}`, share(flow.throughput_bps, 1e6, 2), share(flow.queueing_ns, 1e6, 1),
      share(flow.loss_ratio, 0.01, 2), share(flow.cwnd_bytes, 1e3, 1), share(flow.srtt_ns, 1e6, 1),
    ]));
    for (const id of ["queue", "queues"]) place(id).parentElement.hidden = !queues.length; // none is known of a real path
    fill("queues", queues.map((queue) => [
      queue.element, share(queue.throughput_bps, 1e6, 2), share(queue.rate_bps, 1e6, 2), queue.queued_packets,
      share(queue.queued_bytes, 1e3, 1), queue.dropped_packets ?? 0,
    ]));
  }

  function show(anew) {
    if (!run) return;
    place("title").textContent = run.title;
    const passed = readings.length ? readings[readings.length - 1].time_ns : 0;
    const words = `${(passed / 1e9).toFixed(1)} s of ${run.duration_ns / 1e9} s`;
    place("state").textContent = over ? `The run has ended at ${words}.` : readings.length ? words : "The hosts and endpoints of the run start.";
    if (!readings.length) return;
    tables();
    charts.forEach((chart) => draw(chart, anew));
  }

  function note({ time_ns, text }) {
    const item = document.createElement("li");
    item.textContent = `${(time_ns / 1e9).toFixed(2)} s: ${text}`;
    if (!marks.length && place("notes").textContent === "None yet.") place("notes").replaceChildren();
    place("notes").prepend(item);
    if (place("latest")) place("latest").textContent = item.textContent; // beside the orders: the list may be far below
  }

  function take(news) {
    let anew = false;
    if (news.run) {
      run = news.run;
      readings = [];
      marks = [];
      anew = true;
      if (place("latest")) place("latest").textContent = "";
      place("notes").replaceChildren(Object.assign(document.createElement("li"), { textContent: "None yet." }));
    }
    over = news.over;
    readings = [...readings, ...(news.readings ?? [])].slice(-MOST);
    for (const one of news.notes ?? []) {
      note(one);
      if (one.is_change) { marks.push(one.time_ns / 1e9); anew = true; }
    }
    show(anew);
  }

  const source = new EventSource("events");
  source.onmessage = ({ data }) => take(JSON.parse(data));
  source.onerror = () => {
    source.close();
    place("state").textContent = readings.length ? "The program has ended; these are the last readings." : "The program has ended.";
  };

  place("orders")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const input = place("order"), text = input.value;
    if (!text.trim()) return;
    const headers = { "Content-Type": "application/json" };
    try {
      const answer = await fetch("order", { method: "POST", headers, body: JSON.stringify({ text }) });
      if (answer.ok && !(await answer.json()).refused) input.value = "";
    } catch { /* the stream says that the program has ended */ }
    input.focus();
  });

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach(({ id, plot }) => plot?.setSize({ width: Math.max(260, place(id).clientWidth), height: HEIGHT })), 120);
  });
  narrowsTheme.onChange(() => show(true));
  window.narrowsLive = { count: () => readings.length, marks: () => marks.length };
})();
