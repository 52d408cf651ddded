// What is set on the page, as text, and its place in the address: everything that is not as it was at first.
import { ARMS } from "./config.js";

const FIRST = {
  view: "train",
  a: "running", "a.door": "returns", "a.rate": "0.01",
  b: "kscore", "b.door": "returns", "b.rate": "0.01",
  learner: "reinforce", seed: "4", seeds: "1", cap: "300",
  Q: "0.01", R: "1", jump: "4", outlier: "0",
};
const CHOICES = {
  view: ["train", "filter"], a: Object.keys(ARMS), b: Object.keys(ARMS),
  "a.door": ["returns", "advantages"], "b.door": ["returns", "advantages"],
  learner: ["reinforce", "actor_critic"],
};

// The settings that a state has, with the values they have at first: an arm brings its own knobs.
export function first(state) {
  const all = { ...FIRST };
  for (const side of ["a", "b"])
    for (const [knob, value] of Object.entries(ARMS[state[side] ?? FIRST[side]].knobs)) all[`${side}.${knob}`] = String(value);
  return all;
}

// Read a fragment such as "#a=zscore&seeds=20"; what the page does not know is left out, and said.
export function read(fragment) {
  const found = {}, complaints = [];
  const asked = [...new URLSearchParams(fragment.replace(/^#/, ""))];
  for (const [key, value] of asked.sort(([one]) => (["a", "b"].includes(one) ? -1 : 0))) {
    if (CHOICES[key] && !CHOICES[key].includes(value))
      complaints.push(`${key} must be one of ${CHOICES[key].join(", ")}, got “${value}”`);
    else if (!(key in first(found))) complaints.push(`there is no setting “${key}”`);
    else found[key] = value;
  }
  const state = { ...first(found), ...found };
  const complaint = complaints.length ? `The link was not understood in full: ${complaints.join("; ")}.` : "";
  return { state, complaint };
}

export function write(state) {
  const all = first(state);
  const parts = Object.keys(all).filter((key) => state[key] !== all[key] || (key === "view" && state.view !== "train"));
  return "#" + new URLSearchParams(parts.map((key) => [key, state[key]]));
}

// A number if the text is one; else the text itself, so that Python can say what is wrong with it.
export function number(text) {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
