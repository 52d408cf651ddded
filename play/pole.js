// Cart and pole, moving through the states of an episode at their true speed: 50 steps a second.
const STEP = 20; // milliseconds
const REST = 50; // steps to look at how it ended
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const stages = [];
let paused = still;

export class Stage {
  constructor(host, color) {
    host.innerHTML = `<svg class="stage" viewBox="-2.7 -1.35 5.4 1.75" role="img">
      <line x1="-2.4" x2="2.4" y1="0.16" y2="0.16" class="track"/>
      <line x1="-2.4" x2="-2.4" y1="0.06" y2="0.26" class="track"/><line x1="2.4" x2="2.4" y1="0.06" y2="0.26" class="track"/>
      <g><rect x="-0.28" y="-0.12" width="0.56" height="0.28" rx="0.04" class="cart"/>
      <line x1="0" y1="0" x2="0" y2="-1.1" class="pole" style="stroke: ${color}"/><circle r="0.045" class="axle"/></g></svg>`;
    this.svg = host.firstElementChild;
    [this.cart, this.pole] = [host.querySelector("g"), host.querySelector(".pole")];
    this.states = [[0, 0]];
    this.next = null;
    this.at = 0;
    this.put(this.states[0]);
    stages.push(this);
  }

  // Show an episode when the one on stage has ended.
  show(states, says) {
    this.next = { states, says };
    if (paused) this.change(states.length - 1);
  }

  change(at) {
    if (this.next) {
      this.states = this.next.states;
      this.svg.setAttribute("aria-label", this.next.says);
      this.next = null;
    }
    this.go(at);
  }

  go(at) {
    this.at = at;
    if (at < this.states.length) this.put(this.states[at]);
  }

  move(by) {
    const over = this.at + by >= this.states.length + (this.next ? 0 : REST);
    over ? this.change(0) : this.go(this.at + by);
  }

  put([place, angle]) {
    this.cart.setAttribute("transform", `translate(${Math.max(-2.6, Math.min(2.6, place))} 0)`);
    this.pole.setAttribute("transform", `rotate(${(angle * 180) / Math.PI})`);
  }

  leave() {
    stages.splice(stages.indexOf(this), 1);
  }
}

export function pause(yes) {
  paused = yes;
}
export const motionless = still;

let before = 0;
requestAnimationFrame(function frame(now) {
  const by = Math.floor((now - before) / STEP);
  if (by > 0) {
    before = by > 25 ? now : before + by * STEP;
    if (!paused) for (const stage of stages) stage.move(Math.min(by, 25));
  }
  requestAnimationFrame(frame);
});
