// Wipes the later screenshot over the earlier one. Without this script they stand one below the other.
"use strict";

for (const wiper of document.querySelectorAll(".wiper")) {
  const wipe = wiper.previousElementSibling;
  const handle = wiper.querySelector("input");
  const show = () => wipe.style.setProperty("--at", handle.value + "%");
  wipe.classList.add("live");
  wiper.hidden = false;
  handle.addEventListener("input", show);
  show();
}
