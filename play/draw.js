// Charts as SVG, drawn anew whenever what they show changes.
const INK = "#222222", GREY = "#8a8a8a", FAINT = "#e4e4e4";
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const short = (value) => (value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(0) : Number(value.toPrecision(3)).toString());

// `chart` has x and y, each {min, max, ticks?, label, log?}, marks from the back to the front, and `says` for those
// who cannot see it.
export function draw(host, chart) {
  host.chart = chart;
  if (!host.watched) {
    host.watched = true;
    new ResizeObserver(() => host.chart && render(host, host.chart)).observe(host);
  }
  render(host, chart);
}

function render(host, { x, y, marks, says, height = 260, right = 16 }) {
  const width = host.clientWidth;
  if (!width) return;
  const box = { left: 46, top: 24, right: width - Math.min(right, width / 4), bottom: height - 40, width };
  const across = scale(x, box.left, box.right), up = scale(y, box.bottom, box.top);
  const inside = marks.map((mark) => KINDS[mark.kind](mark, across, up, box)).join("");
  host.setAttribute("aria-label", says);
  host.innerHTML = `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" aria-hidden="true">
    ${axes(x, y, across, up, box)}${inside}</svg>`;
}

function scale({ min, max, log }, from, to) {
  const at = log ? Math.log10 : (value) => value;
  return (value) => from + ((at(value) - at(min)) / (at(max) - at(min))) * (to - from);
}

function ticks({ min, max, log, ticks: given }) {
  if (given) return given;
  if (log) return Array.from({ length: 30 }, (_, i) => 10 ** (i - 15)).filter((t) => t >= min * 0.999 && t <= max * 1.001);
  const rough = (max - min) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const first = Math.ceil(min / step - 1e-9) * step;
  return Array.from({ length: Math.floor((max - first) / step + 1e-9) + 1 }, (_, i) => first + i * step);
}

function axes(x, y, across, up, box) {
  const below = ticks(x).map((t) => `<text x="${across(t)}" y="${box.bottom + 17}" text-anchor="middle">${short(t)}</text>`);
  const beside = ticks(y).map((t) => `<line x1="${box.left}" x2="${box.right}" y1="${up(t)}" y2="${up(t)}" stroke="${FAINT}"/>
    <text x="${box.left - 7}" y="${up(t) + 4}" text-anchor="end">${short(t)}</text>`);
  return `${beside.join("")}${below.join("")}
    <path d="M${box.left} ${box.top}V${box.bottom}H${box.right}" fill="none" stroke="${INK}"/>
    <text x="${box.right}" y="${box.bottom + 34}" text-anchor="end">${escaped(x.label)}</text>
    <text x="0" y="12">${escaped(y.label)}</text>`;
}

const path = (xs, ys, across, up) =>
  ys.map((value, i) => `${i ? "L" : "M"}${across(xs[i]).toFixed(1)} ${up(value).toFixed(1)}`).join("");
const steps = (values) => values.map((_, i) => i);

// The ends of an axis that holds these values, with a little room.
export function ends(...lists) {
  const values = lists.flat(), low = Math.min(...values), high = Math.max(...values), room = (high - low) / 20 || 1;
  return { min: low - room, max: high + room };
}

const KINDS = {
  line({ values, at = steps(values), color = INK, dashes = [], width = 2, opacity = 1, label }, across, up, box) {
    if (!values.length) return "";
    const drawn = `<path d="${path(at, values, across, up)}" fill="none" stroke="${color}" stroke-width="${width}"
      stroke-opacity="${opacity}" stroke-linejoin="round" stroke-dasharray="${dashes.map((d) => d * width)}"/>`;
    const last = values.length - 1;
    return drawn + (label ? written(label, across(at[last]) + 6, up(values[last]) + 4, box) : "");
  },
  dots({ values, at = steps(values), color = INK, size = 2, opacity = 0.45 }, across, up) {
    return values.map((value, i) => `<circle cx="${across(at[i]).toFixed(1)}" cy="${up(value).toFixed(1)}" r="${size}"
      fill="${color}" fill-opacity="${opacity}"/>`).join("");
  },
  band({ low, high, color, opacity = 0.18 }, across, up) {
    const back = [...steps(high)].reverse();
    return `<path d="${path(steps(low), low, across, up)}${path(back, back.map((i) => high[i]), across, up).replace("M", "L")}Z"
      fill="${color}" fill-opacity="${opacity}"/>`;
  },
  bars({ values, color, width }, across, up) {
    const wide = width ?? Math.max(1, across(1) - across(0) - 0.6);
    return values.map((value, i) => `<rect x="${(across(i) - wide / 2).toFixed(1)}" width="${wide.toFixed(1)}"
      y="${Math.min(up(value), up(0)).toFixed(1)}" height="${Math.abs(up(value) - up(0)).toFixed(1)}"
      fill="${color}" fill-opacity="${value < 0 ? 0.4 : 1}"/>`).join("");
  },
  rule({ value, label, color = GREY }, across, up, box) {
    return `<line x1="${box.left}" x2="${box.right}" y1="${up(value)}" y2="${up(value)}" stroke="${color}" stroke-dasharray="2 3"/>
      ${label ? `<text x="${box.right}" y="${up(value) + (up(value) < box.top + 40 ? 15 : -6)}" text-anchor="end">${escaped(label)}</text>` : ""}`;
  },
  ticks({ at, color, row }, across, up, box) {
    return at.map((value) => `<rect x="${across(value) - 1.25}" y="${box.top - 9 + 8 * row}" width="2.5" height="7" fill="${color}"/>`).join("");
  },
};

function written(label, x, y, box) {
  const over = x + 7.2 * label.length > box.width; // no room to the right: above the line
  return `<text class="name" x="${over ? box.right : x}" y="${over ? y - 14 : y}" text-anchor="${over ? "end" : "start"}">${escaped(label)}</text>`;
}
