// Start Python with numpy and kscore, and let kscore.labs.play.answer answer what the page asks.
import { PYTHON_AT, WHEEL } from "./config.js";

const place = new URL(PYTHON_AT, import.meta.url).href;
const answer = start();
answer.catch((error) => postMessage({ failed: sentence(error) }));

onmessage = async ({ data: { id, question } }) => {
  try {
    postMessage({ id, value: JSON.parse((await answer)(JSON.stringify(question))) });
  } catch (error) {
    postMessage({ id, error: sentence(error) });
  }
};

async function start() {
  postMessage({ status: "Python is loading …" });
  const { loadPyodide } = await import(`${place}pyodide.mjs`).catch(() => {
    throw new Error(`Python could not be loaded from ${place}. The page that “make play-offline” builds brings it along.`);
  });
  const pyodide = await loadPyodide({ indexURL: place });
  postMessage({ status: "Python is here, numpy is loading …" });
  await pyodide.loadPackage("numpy", { messageCallback() {} });
  const wheel = await fetch(new URL(WHEEL, import.meta.url));
  pyodide.unpackArchive(await wheel.arrayBuffer(), "wheel", { extractDir: "/tmp/kscore" });
  pyodide.runPython("import sys; sys.path.insert(0, '/tmp/kscore')");
  const { answer } = pyodide.pyimport("kscore.labs.play");
  postMessage({ ready: pyodide.runPython(
    "import kscore, numpy\nf'Python {sys.version.split()[0]}, numpy {numpy.__version__} and kscore {kscore.__version__}'") });
  return answer;
}

// The last line of a traceback is what went wrong; a ValueError of kscore is a sentence already.
function sentence(error) {
  const last = String(error.message ?? error).trim().split("\n").pop();
  if (error.name !== "PythonError" && error.type === undefined) return last;
  return last.startsWith("ValueError: ") ? last.slice(12) : `Python stopped with an error: ${last}`;
}
