// The filter to play with: four sliders, three panels, no kernel and no library.
// It computes what kscore.normalizers.KScore computes, step by step, in the same order.
(() => {
  const EPS = 1e-8;

  function filter(z, { Q, R, P0 }) {
    let x = 0, P = P0;
    return z.map(value => {
      const prior = P + Q, gain = prior / (prior + R), surprise = value - x;
      x = x + gain * surprise;
      P = gain * R;
      return { mean: x, sd: Math.sqrt(P), gain, kscore: (value - x) / Math.sqrt(P + EPS),
               innovation: surprise / Math.sqrt(prior + R + EPS) };
    });
  }

  function element(name, attributes = {}, ...children) {
    const drawn = ["svg", "g", "path", "line", "circle", "text"].includes(name);
    const made = drawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  const short = value => String(Number(value.toPrecision(2)));

  function ticks(low, high) {
    const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(candidate => candidate >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  // One panel: its words, its axes, its lines. `lines` are {values, color, dash, words}, `dots` the same without a dash.
  function panel(width, height, title, { low, high, lines = [], dots = [], band = null, legend = [], last = false }) {
    const [left, right, top, bottom] = [48, 14, 26, last ? 34 : 12], count = (lines[0] || dots[0]).values.length;
    const across = t => left + (width - left - right) * (t / (count - 1));
    const up = v => top + (height - top - bottom) * (1 - (v - low) / (high - low));
    const trace = values => "M" + values.map((v, t) => `${across(t).toFixed(1)},${up(v).toFixed(1)}`).join("L");
    const words = (text, x, y, more = {}) => element("text", { x, y, "font-size": 12, fill: "#222222", ...more }, text);
    const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    svg.append(words(title, 0, 14, { "font-weight": "bold" }));
    let place = 52;
    for (const { words: name, color, dash, dot } of legend) {
      svg.append(dot ? element("circle", { cx: place + 12, cy: 10, r: 2, fill: color })
        : element("line", { x1: place, x2: place + 22, y1: 10, y2: 10, stroke: color, "stroke-width": 2,
                            "stroke-dasharray": dash || "none" }), words(name, place + 26, 14));
      place += 38 + 6.6 * name.length;
    }
    for (const v of ticks(low, high)) {
      svg.append(element("line", { x1: left, x2: width - right, y1: up(v), y2: up(v), stroke: "#dddddd" }),
                 words(String(v), left - 6, up(v) + 4, { "text-anchor": "end" }));
    }
    if (last) {
      for (const t of [1, 30, 60, 90, 120].filter(t => t <= count)) {
        svg.append(words(String(t), across(t - 1), height - bottom + 15, { "text-anchor": "middle" }));
      }
      svg.append(words("step t", (left + width - right) / 2, height - 4, { "text-anchor": "middle" }));
    }
    if (band) {
      const back = band.below.map((v, t) => [across(t), up(v)]).reverse();
      svg.append(element("path", { d: trace(band.above) + back.map(([x, y]) => `L${x.toFixed(1)},${y.toFixed(1)}`).join("")
                                      + "Z", fill: band.color, opacity: 0.2 }));
    }
    for (const { values, color } of dots) {
      values.forEach((v, t) => svg.append(element("circle", { cx: across(t), cy: up(v), r: 1.8, fill: color })));
    }
    for (const { values, color, dash } of lines) {
      svg.append(element("path", { d: trace(values), fill: "none", stroke: color, "stroke-width": 1.8,
                                   "stroke-dasharray": dash || "none" }));
    }
    return svg;
  }

  const room = (...series) => {
    const all = series.flat(), [low, high] = [Math.min(...all), Math.max(...all)], edge = 0.05 * (high - low) || 1;
    return { low: low - edge, high: high + edge };
  };

  function start(root) {
    root.dataset.live = "yes";
    const { noise, settings, colors } = JSON.parse(root.dataset.explore);
    const plain = Object.fromEntries(settings.map(({ name, value }) => [name, value]));
    const setting = { ...plain };
    const sliders = settings.map(({ name, words, value, low, high, step, log }) => {
      const input = element("input", { type: "range", min: low, max: high, step, "aria-label": words,
                                       value: log ? Math.log10(value) : value });
      const shown = element("output");
      const set = () => {
        setting[name] = log ? 10 ** Number(input.value) : Number(input.value);
        shown.textContent = short(setting[name]);
        input.setAttribute("aria-valuetext", short(setting[name]));
      };
      set();
      input.addEventListener("input", () => { set(); draw(); });
      return { input, set, value: input.value, row: element("label", {}, element("span", {}, words), input, shown) };
    });
    const reset = element("button", { type: "button" }, "Start again");
    reset.addEventListener("click", () => {
      for (const { input, set, value } of sliders) { input.value = value; set(); }
      draw();
    });
    const picture = element("div", { role: "img" }), said = element("p", { "aria-live": "polite" });
    root.replaceChildren(element("div", { class: "kscore-sliders" }, ...sliders.map(({ row }) => row), reset), picture, said);

    function draw() {
      const mean = noise.map((_, t) => t >= noise.length / 2 ? setting.jump : 0);
      const z = noise.map((value, t) => mean[t] + value), steps = filter(z, setting);
      const of = key => steps.map(step => step[key]);
      root.series = { setting: { ...setting }, z, mean: of("mean"), sd: of("sd"), gain: of("gain"), kscore: of("kscore"),
                      innovation: of("innovation") };  // for whoever wants to check
      const above = steps.map(({ mean, sd }) => mean + 2 * sd), below = steps.map(({ mean, sd }) => mean - 2 * sd);
      const gain = steps.at(-1).gain, ratio = Math.sqrt((1 - gain) / gain);
      const strongest = Math.max(...of("kscore").slice(noise.length / 2, noise.length / 2 + 10).map(Math.abs));
      said.textContent = `The gain ends at ${short(gain)}: the last K-Score is ${short(ratio)} times as large as the `
        + `innovation score. In the ten steps after the jump the K-Score reaches ${short(strongest)}.`;
      picture.setAttribute("aria-label", `Three panels: observations with the filter's belief, its gain, and the two `
        + `scores. ${said.textContent}`);
      const width = Math.min(picture.clientWidth, 760);
      if (!width) return;  // folded away; it is drawn when there is room
      const belief = { color: colors.kscore, words: "belief ± 2 √P" }, ink = { color: colors.ink, dash: "2 3", words: "mean" };
      const seen = { color: colors.grey, words: "observed", dot: true };
      const scores = [{ values: of("kscore"), color: colors.kscore, words: "K-Score" },
                      { values: of("innovation"), color: colors.innovation, dash: "2 3", words: "innovation score" }];
      picture.replaceChildren(
        panel(width, 190, "value", { ...room(z, above, below), band: { above, below, color: colors.kscore },
          dots: [{ values: z, ...seen }], lines: [{ values: mean, ...ink }, { values: of("mean"), ...belief }],
          legend: [seen, ink, belief] }),
        panel(width, 120, "gain", { low: 0, high: 1, lines: [{ values: of("gain"), color: colors.gain }] }),
        panel(width, 180, "score", { ...room(of("kscore"), of("innovation")), lines: scores, legend: scores, last: true }));
    }

    // JupyterLab would take the arrow keys for itself, and move between cells.
    window.addEventListener("keydown", event => {
      if (root.contains(event.target) && event.key !== "Tab") event.stopImmediatePropagation();
    }, true);
    draw();
    let wide = root.clientWidth;
    new ResizeObserver(() => { if (root.clientWidth !== wide) { wide = root.clientWidth; draw(); } }).observe(root);
  }

  // A notebook may run this before it shows what was written beside it.
  function begin(patience) {
    const waiting = [...document.querySelectorAll(".kscore-explore:not([data-live])")];
    waiting.forEach(start);
    if (!waiting.length && patience) setTimeout(() => begin(patience - 1), 50);
  }
  begin(100);
})();
