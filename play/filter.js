// One filter: move its settings and see what it believes, where its gain settles, and what that costs a gradient.
import { ARMS } from "./config.js";
import { draw, ends } from "./draw.js";
import { number } from "./state.js";

const $ = (id) => document.getElementById(id);
const SLIDERS = { // from the least to the most; Q and R move by powers of ten
  Q: { min: -5, max: 1, step: 0.05, log: true }, R: { min: -3, max: 2, step: 0.05, log: true },
  jump: { min: -10, max: 10, step: 0.5 }, outlier: { min: -20, max: 20, step: 0.5 },
};
const ORANGE = ARMS.kscore.color, GREY = "#8a8a8a", INK = "#222222";
const digits = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString());
const INF = "∞";

export class Filtering {
  constructor({ ask, changed, failed }) {
    Object.assign(this, { ask, changed, failed });
    for (const [key, { min, max, step, log }] of Object.entries(SLIDERS)) {
      const box = document.querySelector(`.slider[data-key=${key}]`), name = box.firstElementChild.textContent;
      box.insertAdjacentHTML("beforeend", `<input type="range" min="${min}" max="${max}" step="${step}" aria-label="${name}">
        <input id="${key}" inputmode="decimal">`);
      const [range, text] = box.querySelectorAll("input");
      range.addEventListener("input", () => changed({ [key]: log ? digits(10 ** range.value) : range.value }));
      text.addEventListener("input", () => changed({ [key]: text.value }));
    }
    $("filter").addEventListener("submit", (event) => event.preventDefault());
  }

  show(state) {
    for (const [key, { log }] of Object.entries(SLIDERS)) {
      const [range, text] = document.querySelectorAll(`.slider[data-key=${key}] input`), value = Number(state[key]);
      if (text.value !== state[key]) text.value = state[key];
      if (document.activeElement !== range) range.value = log ? Math.log10(value) : value;
      range.setAttribute("aria-valuetext", state[key]);
    }
    this.wanted = { ask: "follow", ...Object.fromEntries(Object.keys(SLIDERS).map((key) => [key, number(state[key])])) };
    if (!this.busy) this.follow();
  }

  // Ask for what is wanted now; what was wanted meanwhile comes next, and what lay between is passed over.
  async follow() {
    for (this.busy = true; this.wanted; ) {
      const question = this.wanted;
      this.wanted = null;
      try {
        this.draw(await this.ask(question), question);
        if (this.wrong) this.failed((this.wrong = ""));
      } catch (error) {
        this.failed((this.wrong = error.message));
      }
    }
    this.busy = false;
  }

  draw(path, { Q, R }) {
    const { gain, var: variance } = path.settled, shares = [0, 5, 20].map((step) => path.kept[step]);
    const memory = gain > 0 ? `${digits(1 / gain)} steps` : "all that it ever saw";
    $("settled").innerHTML = `<span><i>K</i>∞ = <b>${digits(gain)}</b></span> <span><i>P</i>∞ = <b>${digits(variance)}</b></span>
      <span>memory <b>${memory}</b></span> <span>gradient kept at steps 0, 5 and 20: <b>${shares.map((s) => s.toFixed(2)).join(", ")}</b></span>`;
    const steps = { min: 0, max: path.seen.length - 1, label: "step" }, n = path.seen.length;
    const low = path.mean.map((mean, i) => mean - 2 * path.deviation[i]), high = path.mean.map((mean, i) => mean + 2 * path.deviation[i]);
    draw($("belief"), { x: steps, y: { ...ends(path.seen, low, high), label: "level" }, height: 300,
      says: `The belief follows ${n} observations; its last value is ${digits(path.mean.at(-1))}, and the level is ${digits(path.level.at(-1))}.`,
      marks: [{ kind: "line", at: corner(path.level), values: doubled(path.level), color: GREY, width: 1.5 }, { kind: "dots", values: path.seen, color: GREY, opacity: 0.8 },
        { kind: "band", low, high, color: ORANGE }, { kind: "line", values: path.mean, color: ORANGE, width: 2.5 }] });
    draw($("gain"), { x: steps, y: { min: 0, max: 1, label: "gain K" }, height: 200, says: `The gain settles at ${digits(gain)}.`,
      marks: [{ kind: "rule", value: gain, label: `K${INF}` }, { kind: "line", values: path.gain, color: ORANGE }] });
    const most = Math.max(...path.var), least = Math.min(...path.var);
    draw($("variance"), { x: steps, y: { ...decades(least, most), log: true, label: "variance P" }, height: 200, says: `The variance settles at ${digits(variance)}.`,
      marks: [...(variance > 0 ? [{ kind: "rule", value: variance, label: `P${INF}` }] : []), { kind: "line", values: path.var, color: ORANGE }] });
    draw($("kept"), { x: { min: 1e-3, max: 1, log: true, label: "gain K" }, y: { min: 0, max: 1, label: "share of the expected gradient kept" },
      height: 260, right: 16, says: `With a gain of ${digits(gain)} the share kept is ${shares.map((s) => s.toFixed(2)).join(", ")} at steps 0, 5 and 20.`,
      marks: [0, 5, 20].flatMap((step, i) => [
        { kind: "line", at: path.by_gain.gain, values: path.by_gain[step], color: INK, width: 1.5, opacity: 1 - 0.3 * i },
        { kind: "line", at: [KNEE[step]], values: [nearest(path.by_gain, step)], label: `step ${step}`, color: INK },
        ...(gain >= 1e-3 ? [{ kind: "dots", at: [gain], values: [shares[i]], color: ORANGE, size: 5, opacity: 1 }] : []),
      ]) });
  }
}

// A level that jumps between two steps does so upright.
const doubled = (values) => values.flatMap((value) => [value, value]);
const corner = (values) => values.flatMap((_, i) => [Math.max(0, i - 0.5), Math.min(values.length - 1, i + 0.5)]);

// Where the name of a curve stands: a gain at which the three are well apart.
const KNEE = { 0: 0.35, 5: 0.13, 20: 0.016 };
const nearest = ({ gain, ...curves }, step) => curves[step][gain.findIndex((K) => K >= KNEE[step])];
const decades = (low, high) => ({ min: 10 ** Math.floor(Math.log10(Math.max(low, 1e-12))), max: 10 ** Math.ceil(Math.log10(high) + 1e-9) });
