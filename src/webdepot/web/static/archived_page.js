// Runs inside archived pages, after the rewriting script: tells the frame what it cannot see from outside, and helps the rewriting
// script where it stops short. It adds nothing that a page could not do itself: what guards readers is the policy of the page.
(function () {
  "use strict";
  if (window.top === window) return;
  const top = window.top;
  const tell = (message) => top.postMessage(message, "*");

  // First, so that nothing below can prevent it: peer connections ask servers of the live web by UDP, and no Content-Security-Policy covers
  // them. They are taken out, of this page and of the blank frames that it makes.
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

  delete document.cookie; // of the rewriting script: the jar below it (`cookies.js`) knows domains and paths itself

  // While this page is open, `start.js` leaves alone what it stores.
  if (navigator.locks) navigator.locks.request("archived page", { mode: "shared" }, () => new Promise(() => {})).catch(() => {});

  document.addEventListener("securitypolicyviolation", (event) => {
    if (event.disposition === "enforce") tell({ webdepot: "blocked", what: String(event.blockedURI).slice(0, 200) });
  });

  // Printing: the frame around a page says what its source is; the line is above the page on paper only. How high the page is, is for the
  // browser's own print command, which prints the frame.
  if (window.parent === top) {
    const HEIGHT_PAUSE_MS = 500;
    let height = 0;
    const tellHeight = () => {
      const now = document.documentElement ? document.documentElement.scrollHeight : 0;
      if (now !== height) tell({ webdepot: "height", height: (height = now) });
    };
    window.addEventListener("load", () => {
      tellHeight();
      let waiting = 0;
      new ResizeObserver(() => {
        clearTimeout(waiting);
        waiting = setTimeout(tellHeight, HEIGHT_PAUSE_MS);
      }).observe(document.documentElement);
    });
    window.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "p") return;
      event.preventDefault();
      tell({ webdepot: "print" });
    }, true);
    window.addEventListener("message", (event) => {
      const message = event.data;
      if (event.source !== top || !message || message.webdepot !== "print") return;
      const line = document.getElementById("webdepot-source") || document.createElement("p");
      line.id = "webdepot-source";
      line.textContent = String(message.source);
      line.style.cssText =
        "all: initial; display: none; font: 9pt/1.4 sans-serif; color: #000; background: #fff; padding: 0 0 2mm; margin: 0 0 4mm; border-bottom: 0.3mm solid #000; overflow-wrap: anywhere";
      const sheet = document.createElement("style");
      sheet.textContent = "@media print { #webdepot-source { display: block !important } }";
      line.append(sheet);
      (document.body || document.documentElement).prepend(line);
      window.print();
    });
  }

  // In a harvest under review, what a page shows is marked where it is missing.
  if (location.pathname.startsWith("/review-")) {
    const mark = (part) => {
      part.setAttribute("data-webdepot-missing", "");
      Object.assign(part.style, { outline: "3px dashed #c00", outlineOffset: "-3px", minWidth: "24px", minHeight: "24px" });
    };
    const shown = "img,input[type=image],video,audio,object,embed";
    document.addEventListener("error", (event) => event.target instanceof Element && event.target.matches(shown) && mark(event.target), true);
  }

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

  // The outermost archived page. The frame around it shows what it has opened itself, so what is meant for the whole window, or for a new
  // one, goes through that frame.
  let archivedTop = window;
  while (archivedTop.parent && archivedTop.parent !== top) archivedTop = archivedTop.parent;
  const isFramed = archivedTop.name === "___wb_replay_top_frame";
  // Said before the page begins: if the frame did not open it, it opens it again.
  if (isFramed && window === archivedTop && window.wbinfo) tell({ wb_type: "load", url: window.wbinfo.url, ts: window.wbinfo.timestamp });

  // A page that was archived without this query, opened with it: its own scripts read the query, as on a search page.
  const QUERY = "#webdepot-query=";
  if (location.hash.startsWith(QUERY)) {
    try {
      history.replaceState(history.state, "", "?" + decodeURIComponent(location.hash.slice(QUERY.length)));
    } catch (error) {
      console.warn(error);
    }
  }

  // The window that a target names, as browsers choose it: https://html.spec.whatwg.org/#the-rules-for-choosing-a-navigable
  function windowFor(target) {
    const name = target.toLowerCase();
    if (name === "" || name === "_self") return window;
    if (name === "_parent") return window === archivedTop ? window : window.parent;
    if (name.startsWith("_")) return archivedTop;
    return findFrame(target, window) || findFrame(target, archivedTop) || archivedTop;
  }

  function findFrame(name, at) {
    try {
      if (at.name === name) return at;
    } catch {
      return null; // of another origin: no archived page
    }
    for (let index = 0; index < at.length; index += 1) {
      const found = findFrame(name, at[index]);
      if (found) return found;
    }
    return null;
  }

  function targetOf(element) {
    const own = element.getAttribute("target");
    if (own !== null) return own;
    const base = document.querySelector("base[target]");
    return base ? base.getAttribute("target") : "";
  }

  // The sandbox lets a page navigate only itself and the frames in it. So the page around the target's frame does it, or the target itself.
  function openIn(place, url) {
    if (place === archivedTop) tell({ webdepot: "go", url: url.slice(0, 60000) });
    else place.frameElement.src = url;
  }

  window.addEventListener("click", (event) => {
    const link = event.composedPath().find((one) => one instanceof Element && one.matches("a[href], area[href]"));
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = String(link.href);
    const target = targetOf(link);
    const place = windowFor(target);
    const isHere = place === window && url.includes("#") && url.split("#")[0] === String(document.baseURI).split("#")[0];
    if (!/^https?:/.test(url) || isHere || link.hasAttribute("download")) return;
    if (place === window && (place !== archivedTop || !isFramed)) {
      if (target) link.target = "_self";
      return;
    }
    event.preventDefault();
    openIn(place, url);
  });

  // The window that a form is sent to. One that would be new is this one.
  function windowOf(form, submitter) {
    const target = (submitter && submitter.getAttribute("formtarget")) || targetOf(form);
    const place = windowFor(target);
    if (target && place === window) {
      form.setAttribute("target", "_self");
      if (submitter) submitter.removeAttribute("formtarget");
    }
    return place;
  }

  function sendIn(place, form, submitter) {
    const given = (name) => (submitter && submitter.getAttribute("form" + name)) || form.getAttribute(name);
    const make = (name) => place.document.createElementNS("http://www.w3.org/1999/xhtml", name);
    const copy = make("form");
    copy.setAttribute("action", new URL(given("action") || document.URL, document.baseURI).href);
    for (const name of ["method", "enctype"]) if (given(name)) copy.setAttribute(name, given(name));
    copy.setAttribute("accept-charset", form.getAttribute("accept-charset") || document.characterSet);
    for (const [name, value] of new FormData(form, submitter)) {
      const field = make("input");
      Object.assign(field, { type: "hidden", name, value });
      copy.append(field);
    }
    copy.hidden = true;
    place.document.documentElement.append(copy);
    place.HTMLFormElement.prototype.submit.call(copy);
    copy.remove();
  }

  window.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !(form instanceof HTMLFormElement)) return;
    const place = windowOf(form, event.submitter);
    if (place === window) return;
    event.preventDefault();
    sendIn(place, form, event.submitter);
  });

  const { submit } = HTMLFormElement.prototype;
  HTMLFormElement.prototype.submit = function () {
    const place = windowOf(this, null);
    if (place === window) submit.call(this);
    else sendIn(place, this, null);
  };

  const { open } = window;
  window.open = function (url, name, ...rest) {
    const place = windowFor(String(name || "_blank"));
    if (!url || place === window) return open.call(this === undefined ? window : this, url, name, ...rest);
    openIn(place, new URL(url, document.baseURI).href);
    return place;
  };

  // `addEventListener("message", ...)` without `window.` before it: the rewriting script's own function knows no `this` then and fails.
  for (const name of ["addEventListener", "removeEventListener"]) {
    const rewritten = window[name];
    window[name] = function (...given) {
      return rewritten.apply(this === undefined || this === null ? window : this, given);
    };
  }

  // `import("name")` and `import("folder/file.js")` by an import map: the rewriting script knows whole names only, and in a script that
  // is not a module it takes relative addresses for its own.
  const rewriteImport = window.____wb_rewrite_import__;
  window.____wb_rewrite_import__ = function (base, specifier, options) {
    if (specifier === undefined) return rewriteImport(base, specifier);
    const name = String(specifier);
    const isBare = !/^\.{0,2}\//.test(name) && !URL.canParse(name);
    if (isBare) return import(name, options);
    const script = document.currentScript;
    return rewriteImport(base || (script && script.src) || document.baseURI, name);
  };

  // Nodes that a text or a comment puts beside itself, as Svelte does with its templates: the rewriting script rewrites only what an
  // element or `appendChild` puts into a page.
  for (const kind of [Text.prototype, CharacterData.prototype]) {
    for (const name of ["before", "after", "replaceWith"]) {
      const put = kind[name];
      kind[name] = function (...given) {
        if (!this.parentNode || given.includes(this)) return put.apply(this, given);
        const nodes = document.createDocumentFragment();
        for (const node of given) nodes.appendChild(node && node.nodeType ? node : document.createTextNode(node));
        return put.call(this, nodes);
      };
    }
  }

  // The reader's screen, which the rewriting script has replaced by a constant.
  if (window.wbinfo && window.wbinfo.ratio) Object.defineProperty(window, "devicePixelRatio", window.wbinfo.ratio);

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
