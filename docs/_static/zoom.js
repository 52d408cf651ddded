// Figures open in full size: by a click, or by Enter where one has tabbed to them; Escape or a click closes.
document.addEventListener("DOMContentLoaded", () => {
  const dialog = document.createElement("dialog");
  dialog.className = "zoom";
  dialog.setAttribute("aria-label", "Figure in full size");
  dialog.innerHTML = '<button autofocus>Close</button><div><img alt=""></div>';
  dialog.addEventListener("click", () => dialog.close());
  document.body.append(dialog);

  const open = image => {
    const full = dialog.querySelector("img");
    full.src = image.src;
    full.alt = image.alt;
    dialog.showModal();
  };
  for (const image of document.querySelectorAll("article img")) {
    if (image.closest("a")) continue;
    image.classList.add("zoomable");
    image.tabIndex = 0;
    image.setAttribute("role", "button");
    image.title = "Show in full size";
    image.addEventListener("click", () => open(image));
    image.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(image); }
    });
  }
});
