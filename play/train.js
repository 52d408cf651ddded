// Two arms train: the form, the curves, the table of seeds, and a look inside the last episode of each.
import { ARMS } from "./config.js";
import { draw, ends } from "./draw.js";
import { Stage, motionless, pause } from "./pole.js";
import { number } from "./state.js";

const SIDES = ["a", "b"], INK = "#222222", SOLVED = 475, WINDOW = 25, TWENTY = 20;
const MEANING = { Q: "Drift Q", R: "Noise R", alpha: "Memory α of the noise", decay: "Memory β", ratio: "Drift over noise", fading: "Weight of the newest" };
const $ = (id) => document.getElementById(id);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

export class Training {
  constructor({ ask, changed, failed }) {
    Object.assign(this, { ask, changed, failed, seeds: new Map(), going: false });
    $("duel").addEventListener("submit", (event) => (event.preventDefault(), this.train()));
    $("duel").addEventListener("input", (event) => this.set(event.target));
    $("stop").addEventListener("click", () => (this.going = false));
    $("twenty").addEventListener("click", () => (changed({ seeds: String(TWENTY) }), this.train()));
    $("pause").hidden = motionless;
    $("pause").addEventListener("click", ({ target }) => {
      const paused = target.getAttribute("aria-pressed") !== "true";
      target.setAttribute("aria-pressed", paused);
      target.textContent = paused ? "Let the poles move" : "Pause the poles";
      pause(paused);
    });
  }

  // The form

  show(state) {
    this.state = state;
    for (const side of SIDES) this.showArm(side);
    for (const key of ["learner", "seed", "seeds", "cap"]) if ($(key).value !== state[key]) $(key).value = state[key];
  }

  showArm(side) {
    const { state } = this, name = state[side], box = $(`arm-${side}`);
    if (box.dataset.arm !== name) {
      const options = Object.entries(ARMS).map(([key, arm]) => `<option value="${key}">${arm.label}</option>`);
      const knobs = Object.keys(ARMS[name].knobs).map((knob) => field(`${side}.${knob}`, MEANING[knob]));
      box.innerHTML = `<legend>Policy ${side.toUpperCase()} ${sample(this.look(side))}</legend>
        <label class="wide">Normalizer <select id="${side}">${options.join("")}</select></label>
        <label>Door <select id="${side}.door"><option>returns</option><option>advantages</option></select></label>
        ${field(`${side}.rate`, "Learning rate")}${knobs.join("")}`;
      box.dataset.arm = name;
      box.style.setProperty("--arm", this.look(side).color);
    }
    for (const input of box.querySelectorAll("select, input")) if (input.value !== state[input.id]) input.value = state[input.id];
  }

  set(input) {
    const arm = SIDES.includes(input.id);
    this.changed({ [input.id]: input.value }, arm && input.id);
    if (arm) $(input.id).focus();
  }

  look(side) {
    const { color, dashes, label } = ARMS[this.state[side]];
    const alike = side === "b" && this.state.a === this.state.b;
    const name = this.state.a === this.state.b ? `${label} (${side.toUpperCase()})` : label;
    return { color: alike ? INK : color, dashes, name, door: this.state[`${side}.door`] };
  }

  arm(side) {
    const settings = { name: this.state[side], door: this.state[`${side}.door`], rate: number(this.state[`${side}.rate`]) };
    for (const knob of Object.keys(ARMS[this.state[side]].knobs)) settings[knob] = number(this.state[`${side}.${knob}`]);
    return settings;
  }

  // The duel

  async train() {
    if (this.going) return;
    const { learner, seed, seeds, cap } = this.state;
    this.going = true;
    this.failed("");
    try {
      await this.ask({ ask: "begin", arms: SIDES.map((side) => this.arm(side)), learner,
        seed: number(seed), seeds: number(seeds), cap: number(cap) });
      this.begin();
      for (let over = false; !over && this.going; ) over = this.take(await this.ask({ ask: "go_on", seconds: 0.15 }));
      this.end();
    } catch (error) {
      this.failed(error.message);
    }
    this.going = false;
    this.buttons();
  }

  begin() {
    this.seeds.clear();
    this.looks = SIDES.map((side) => this.look(side));
    this.cap = Number(this.state.cap);
    this.asked = Number(this.state.seeds);
    SIDES.forEach((side, i) => this.setScene(side, this.looks[i]));
    document.body.dataset.state = "training";
    $("verdict").textContent = this.asked > 1 ? `Training ${this.asked} seeds …` : "Training …";
    this.buttons();
    this.drawAll();
  }

  take({ seeds, over }) {
    for (const seed of seeds) this.seeds.set(seed.seed, seed);
    this.drawAll();
    return over;
  }

  end() {
    const whole = this.going;
    this.going = false;
    this.drawAll();
    document.body.dataset.state = whole ? "done" : "ready";
    document.body.dataset.episodes = this.all().flatMap((seed) => seed.arms).reduce((sum, arm) => sum + arm.lengths.length, 0);
    $("verdict").textContent = this.verdict();
    $("twenty").hidden = !(whole && this.asked === 1);
  }

  buttons() {
    const held = ["train", "stop", "twenty"].includes(document.activeElement.id); // whoever pressed one stays there
    $("train").hidden = this.going;
    $("stop").hidden = !this.going;
    if (this.going) $("twenty").hidden = true;
    if (held) $(this.going ? "stop" : "train").focus();
  }

  all() {
    return [...this.seeds.values()];
  }

  // Who was first

  done() {
    return this.all().filter((seed) => seed.arms.every((arm) => arm.over));
  }

  winner({ arms }) {
    const [a, b] = arms.map((arm) => (arm.solved ? arm.lengths.length : Infinity));
    return a === b ? (a === Infinity ? "neither" : "tie") : a < b ? 0 : 1;
  }

  took({ solved, lengths }) {
    return `${solved ? "solved it" : "had not solved it"} after ${lengths.length} episodes`;
  }

  verdict() {
    const done = this.done();
    if (!done.length) return "Stopped before the first seed was finished.";
    if (done.length === 1) {
      const { arms } = done[0], said = this.looks.map(({ name }, i) => `${capital(name)} ${this.took(arms[i])}`);
      return `${said.join(". ")}. One run each: would it come out like this again?`;
    }
    const won = this.looks.map((_, i) => done.filter((seed) => this.winner(seed) === i).length);
    const rest = done.length - won[0] - won[1];
    return `${capital(this.looks[0].name)} was first in ${won[0]} of ${done.length} seeds, ${this.looks[1].name} in ${won[1]}` +
      `${rest ? `, and neither in ${rest}` : ""}. Median episodes: ${this.medians(done).join(" and ")}.`;
  }

  medians(done) {
    return this.looks.map((_, i) => {
      const times = done.map(({ arms }) => (arms[i].solved ? arms[i].lengths.length : Infinity)).sort((x, y) => x - y);
      const middle = times[Math.floor((times.length - 1) / 2)];
      return middle === Infinity ? `more than ${this.cap}` : middle;
    });
  }

  drawAll() {
    this.drawCurves();
    this.drawTable();
    const newest = this.all().at(-1);
    if (newest) SIDES.forEach((side, i) => this.drawScene(side, newest.seed, newest.arms[i], this.looks[i]));
  }

  drawCurves() {
    const seeds = this.all(), newest = seeds.at(-1), one = this.asked === 1, marks = [];
    marks.push({ kind: "rule", value: SOLVED, label: "solved" });
    this.looks.forEach(({ color, dashes, name }, i) => {
      for (const seed of seeds) {
        const lengths = seed.arms[i].lengths;
        if (one) marks.push({ kind: "dots", values: lengths, color });
        marks.push({ kind: "line", values: smooth(lengths), color, dashes, width: one ? 2.5 : 1.5,
          opacity: one || seed === newest ? 1 : 0.35, label: one ? name : "" });
      }
      const solved = seeds.map((seed) => seed.arms[i]).filter((arm) => arm.solved).map((arm) => arm.lengths.length);
      marks.push({ kind: "ticks", at: solved, color, row: i });
    });
    const longest = Math.max(50, ...seeds.flatMap((seed) => seed.arms.map((arm) => arm.lengths.length)));
    const names = this.looks.map(({ name }) => name);
    draw($("curves"), {
      x: { min: 0, max: longest, label: "training episodes" }, height: 320, right: one ? 150 : 16,
      y: { min: 0, max: 500, ticks: [0, 100, 200, 300, 400, 500], label: one ? "steps of an episode (dots), mean of 25 (lines)" : "steps, mean of 25 episodes" },
      marks, says: `Steps of each training episode for ${names.join(" and ")}. ${this.done().length ? this.verdict() : ""}`,
    });
  }

  drawTable() {
    const seeds = this.done(), [a, b] = this.looks;
    const cells = ({ arms }) => arms.map((arm) => `<td>${arm.solved ? arm.lengths.length : `not in ${arm.lengths.length}`}</td>`).join("");
    const words = { 0: a.name, 1: b.name, tie: "both at once", neither: "neither" };
    const rows = seeds.map((seed) => `<tr><th scope="row">${seed.seed}</th>${cells(seed)}<td>${words[this.winner(seed)]}</td></tr>`);
    $("seeds-box").hidden = !seeds.length;
    $("seeds-table").tHead.innerHTML = `<tr><th scope="col">Seed</th><th scope="col">${a.name}</th><th scope="col">${b.name}</th><th scope="col">First</th></tr>`;
    $("seeds-table").tBodies[0].innerHTML = rows.join("");
    const squares = seeds.map((seed) => `<i style="background: ${this.looks[this.winner(seed)]?.color ?? "transparent"}"></i>`);
    $("tally").hidden = this.asked === 1 || !seeds.length;
    const legend = SIDES.map((side, i) => `<span>${sample(this.looks[i])} ${this.looks[i].name}</span>`);
    $("tally").innerHTML = `<span aria-hidden="true">${squares.join("")}</span>
      <span>${this.going ? `${seeds.length} of ${this.asked} seeds` : "One square for each seed, in the colour of the policy that was first."}</span> ${legend.join(" ")}`;
  }

  // Inside the last episode

  setScene(side, { name, color }) {
    this.stages ??= {};
    this.stages[side]?.leave();
    delete $(`scene-${side}`).dataset.which;
    $(`scene-${side}`).innerHTML = `<figcaption><strong>${name}</strong> <span></span></figcaption><div class="pole-box"></div>
      <div class="chart" role="img" data-part="signal"></div><div class="chart" role="img" data-part="scores"></div>
      <div class="chart" role="img" data-part="gain"></div><p class="note" hidden></p>`;
    this.stages[side] = new Stage($(`scene-${side}`).querySelector(".pole-box"), color);
  }

  drawScene(side, seed, { scene }, { name, color, door }) {
    const box = $(`scene-${side}`), which = `${seed} ${scene.episode}`;
    if (!scene.states || box.dataset.which === which) return;
    box.dataset.which = which;
    const at = `Episode ${scene.episode}: ${scene.states.length} steps, gradient of length ${Number(scene.gradient.toPrecision(2))}`;
    box.querySelector("figcaption span").textContent = at;
    this.stages[side].show(scene.states, `${name}. ${at}.`);
    const part = (key) => box.querySelector(`[data-part=${key}]`), steps = { min: -0.5, max: scene.signal.length - 0.5, label: "step" };
    draw(part("signal"), { x: steps, y: { ...ends(scene.signal, scene.centre), label: door === "returns" ? "return and centre" : "advantage and centre" },
      height: 170, says: `${name}: the signal and the centre at each step`,
      marks: [{ kind: "dots", values: scene.signal, color: "#8a8a8a" }, { kind: "line", values: scene.centre, color }] });
    draw(part("scores"), { x: steps, y: { ...ends(scene.scores, [0]), label: "score" }, height: 150, says: `${name}: the score at each step`,
      marks: [{ kind: "bars", values: scene.scores, color }, { kind: "rule", value: 0 }] });
    const none = box.querySelector(".note");
    part("gain").hidden = !scene.gain;
    none.hidden = Boolean(scene.gain);
    none.textContent = "This normalizer has no filter over steps, so there is no gain to show.";
    if (scene.gain) draw(part("gain"), { x: steps, y: { ...ends(scene.gain, [0]), label: "gain K" }, height: 130, says: `${name}: the gain at each step`,
      marks: [{ kind: "line", values: scene.gain, color }] });
  }
}

const field = (id, words) => `<label>${words} <input id="${id}" inputmode="decimal"></label>`;

const sample = ({ color, dashes }) => `<svg class="sample" width="44" height="8" aria-hidden="true"><line x1="0" x2="44" y1="4" y2="4"
  stroke="${color}" stroke-width="3" stroke-dasharray="${dashes.map((d) => 3 * d)}"/></svg>`;

function smooth(lengths) {
  let sum = 0;
  return lengths.map((length, i) => (sum += length - (lengths[i - WINDOW] ?? 0)) / Math.min(i + 1, WINDOW));
}
