// Runs inside archived pages, after the rewriting script: tells the frame what it cannot see from outside.
(function () {
  "use strict";
  if (window.top === window) return;
  const top = window.top;
  const tell = (message) => top.postMessage(message, "*");

  document.addEventListener("securitypolicyviolation", (event) => {
    if (event.disposition === "enforce") tell({ webdepot: "blocked", what: String(event.blockedURI).slice(0, 200) });
  });

  document.addEventListener(
    "click",
    (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
      if (link && !event.defaultPrevented) tell({ webdepot: "leaving", url: String(link.href).slice(0, 60000) });
    },
    true,
  );
})();
