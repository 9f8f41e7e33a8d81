// Runs inside archived pages, after the rewriting script: tells the frame what it cannot see from outside, and helps the rewriting
// script where it stops short. It adds nothing that a page could not do itself: what guards readers is the policy of the page.
(function () {
  "use strict";
  if (window.top === window) return;
  const top = window.top;
  const tell = (message) => top.postMessage(message, "*");

  // While this page is open, `start.js` leaves alone what it stores.
  if (navigator.locks) navigator.locks.request("archived page", { mode: "shared" }, () => new Promise(() => {})).catch(() => {});

  delete document.cookie; // of the rewriting script: the jar below it (`cookies.js`) knows domains and paths itself

  document.addEventListener("securitypolicyviolation", (event) => {
    if (event.disposition === "enforce") tell({ webdepot: "blocked", what: String(event.blockedURI).slice(0, 200) });
  });

  // When each part was archived: the replay server says so in the one header that a page can read of all its parts.
  const archived = /^https?:\/\/[^/]+\/[^/]+\/\d{14}[a-z]{2,3}_\/(.+)$/;
  new PerformanceObserver((list) => {
    const parts = [];
    for (const entry of list.getEntries()) {
      const said = entry.serverTiming && entry.serverTiming.find((one) => one.name === "captured");
      const url = said && archived.exec(entry.name);
      if (url) parts.push([url[1].slice(0, 4000), said.description]);
    }
    if (parts.length) tell({ webdepot: "parts", parts });
  }).observe({ type: "resource", buffered: true });

  // A link in the page goes through the frame around it, which shows what it has opened itself. Nested frames and other targets do not.
  const OWN_TARGETS = ["", "_self", "_top", "_parent", "_blank", "_new", window.name];
  if (window.parent === top && window.name === "___wb_replay_top_frame") {
    // Said before the page begins: if the frame did not open it, it opens it again.
    if (window.wbinfo) tell({ wb_type: "load", url: window.wbinfo.url, ts: window.wbinfo.timestamp });
    window.addEventListener("click", go);
  }

  function go(event) {
    const link = event.target instanceof Element ? event.target.closest("a[href], area[href]") : null;
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = String(link.href);
    const isHere = url.includes("#") && url.split("#")[0] === String(document.baseURI).split("#")[0];
    if (!/^https?:/.test(url) || isHere || link.hasAttribute("download") || !OWN_TARGETS.includes(link.target)) return;
    event.preventDefault();
    tell({ webdepot: "go", url: url.slice(0, 60000) });
  }

  // `addEventListener("message", ...)` without `window.` before it: the rewriting script's own function knows no `this` then and fails.
  for (const name of ["addEventListener", "removeEventListener"]) {
    const rewritten = window[name];
    window[name] = function (...given) {
      return rewritten.apply(this === undefined || this === null ? window : this, given);
    };
  }

  // Peer connections ask servers of the live web by UDP, and no browser obeys the policy's word against them yet: they are taken out, of
  // this page and of the blank frames that it makes.
  const PEERS = ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"];
  const withoutPeers = (some) => {
    try {
      for (const name of PEERS) delete some[name];
    } catch {
      // another origin: it has a script like this of its own
    }
    return some;
  };
  withoutPeers(window);
  for (const kind of [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement]) {
    const known = Object.getOwnPropertyDescriptor(kind.prototype, "contentWindow");
    if (!known || !known.configurable) continue;
    Object.defineProperty(kind.prototype, "contentWindow", {
      ...known,
      get() {
        const inner = known.get.call(this);
        return inner && withoutPeers(inner);
      },
    });
  }

  // What stands in the page from the start and is rewritten only when a script sets it.
  const waiting = { IFRAME: setAgain, OBJECT: asFrame };

  function setAgain(frame) {
    // A frame with an origin of its own has no worker, so there is nothing that could rebuild its page.
    if (frame.hasAttribute("sandbox") && !frame.sandbox.contains("allow-same-origin")) {
      // What a frame may do is settled when it begins to load, so it begins anew.
      const again = frame.cloneNode(false);
      again.sandbox.add("allow-same-origin");
      frame.replaceWith(again);
      return;
    }
    const text = frame.getAttribute("srcdoc");
    if (text === null || frame.hasAttribute("src")) return;
    frame.removeAttribute("srcdoc");
    frame.srcdoc = text;
  }

  // Browsers ask for the data of <object> past every worker, so the policy refuses it; pages and pictures are shown in its place.
  function asFrame(object) {
    const type = object.getAttribute("type") || "";
    const data = object.getAttribute("data");
    if (!data || !(type === "" || type === "text/html" || type.startsWith("image/"))) return;
    const made = document.createElement(type.startsWith("image/") ? "img" : "iframe");
    for (const { name, value } of object.attributes) if (name !== "data" && name !== "type") made.setAttribute(name, value);
    made.src = data;
    object.replaceWith(made);
  }

  const look = (node) => {
    const mend = waiting[node.nodeName];
    if (mend) mend(node);
    if (node.nodeName === "IFRAME" && node.contentWindow) withoutPeers(node.contentWindow);
  };
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        look(node);
        node.querySelectorAll("iframe, object[data]").forEach(look);
      }
    }
  }).observe(document, { childList: true, subtree: true });
})();
