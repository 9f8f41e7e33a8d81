// Says so when the host of an archived page cannot be reached: each site has a name of its own, which some networks and browsers do not
// resolve.
"use strict";

for (const frame of document.querySelectorAll("iframe")) {
  fetch(new URL("/-/start.css", frame.src), { mode: "no-cors", credentials: "omit" }).catch(() => {
    document.getElementById("unreachable").hidden = false;
    frame.hidden = true;
  });
}
