// Python, in a worker of its own: the page can be used while it computes.
const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let asked = 0;

export function ask(question) {
  return new Promise((resolve, reject) => {
    waiting.set(++asked, { resolve, reject });
    worker.postMessage({ id: asked, question });
  });
}

// Say how far Python is; resolves once it answers.
export function ready(say) {
  return new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message || "the worker that runs Python could not be started"));
    worker.onmessage = ({ data }) => {
      if (data.status) say(data.status);
      else if (data.ready) resolve(data.ready);
      else if (data.failed) reject(new Error(data.failed));
      else {
        const { resolve, reject } = waiting.get(data.id);
        waiting.delete(data.id);
        data.error ? reject(new Error(data.error)) : resolve(data.value);
      }
    };
  });
}
