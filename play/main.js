// The page: what is set is its state, the state is its address, and whatever goes wrong is a sentence.
import { PYTHON_AT } from "./config.js";
import { Filtering } from "./filter.js";
import { ask, ready } from "./python.js";
import { first, read, write } from "./state.js";
import { Training } from "./train.js";

const $ = (id) => document.getElementById(id);
const VIEWS = ["train", "filter"];
let { state, complaint } = read(location.hash);

const failed = (sentence) => {
  $("error").hidden = !sentence;
  $("error").textContent = sentence;
};
const python = ready((words) => ($("status").textContent = words));
const page = { ask: (question) => python.then(() => ask(question)), failed, changed };
const views = { train: new Training(page), filter: new Filtering(page) };

// Take over new settings; an arm that is replaced loses its knobs.
function changed(settings, arm) {
  if (arm) state = Object.fromEntries(Object.entries(state).filter(([key]) => !key.startsWith(`${arm}.`) || /door|rate/.test(key)));
  state = { ...state, ...settings };
  state = { ...first(state), ...state };
  history.replaceState(null, "", location.pathname + location.search + write(state));
  show();
}

function show() {
  for (const view of VIEWS) {
    const here = state.view === view;
    $(`view-${view}`).hidden = !here;
    $(`tab-${view}`).setAttribute("aria-selected", here);
    $(`tab-${view}`).tabIndex = here ? 0 : -1;
  }
  views[state.view].show(state);
}

for (const [i, view] of VIEWS.entries()) {
  const tab = $(`tab-${view}`), other = $(`tab-${VIEWS[1 - i]}`);
  tab.addEventListener("click", () => (failed(""), changed({ view })));
  tab.addEventListener("keydown", ({ key }) => {
    if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) (other.click(), other.focus());
  });
}

$("copy").addEventListener("click", async ({ target }) => {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  target.textContent = copied ? "Copied" : "The link is in the address bar"; // only a secure page may copy
  setTimeout(() => (target.textContent = "Copy link"), 3000);
});

addEventListener("hashchange", () => {
  ({ state, complaint } = read(location.hash));
  failed(complaint);
  show();
});

failed(complaint);
show();
$("where").textContent = PYTHON_AT.startsWith("http")
  ? `This page loads Python (Pyodide, some 16 MB, once) from ${PYTHON_AT}; nothing that you set or see here is sent anywhere.`
  : "This page brings Python along, and loads nothing from anywhere else.";

try {
  $("status").textContent = `${await python} run in this page.`;
  $("train").disabled = false;
  document.body.dataset.state = "ready";
  if (new URLSearchParams(location.search).has("autorun")) views.train.train();
} catch (error) {
  document.body.dataset.state = "error";
  $("status").textContent = "Python did not start.";
  failed(error.message);
}
