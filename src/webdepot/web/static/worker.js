// Before the replay worker (wabac.js, which follows in the same script): decides what reaches it, and what leaves it.
//
// The pages of an archived site, and the frames of others in them, are of one origin, and so are the worker, its registrations,
// IndexedDB, caches and cookies. So:
//   orders      messages of pages are dropped
//   settings    are in this script, made by the server; the query and the scope that it was registered with are ignored
//   storage     none is read: collections are made from their name
//   answers     our policy is set last, on everything that the worker answers
// Everything else goes to the server, which sets its own policy.
"use strict";

(function (settings) {
  const origin = self.location.origin;

  // Registered first, so the listeners of wabac.js hear of neither.
  self.addEventListener("message", (event) => event.stopImmediatePropagation());
  self.addEventListener("fetch", (event) => {
    event.stopImmediatePropagation();
    event.respondWith(answer(event));
  });

  const put = (holder, name, value) => Object.defineProperty(holder, name, { get: () => value });
  put(WorkerLocation.prototype, "search", settings.query);
  put(ServiceWorkerRegistration.prototype, "scope", origin + "/");
  put(self, "caches", undefined);
  // Opening a database never ends, so wabac.js waits for its settings in vain and nothing that it would do with them happens.
  put(self, "indexedDB", { open: () => Object.assign(new Promise(() => {}), { addEventListener() {} }) });

  const ARCHIVED = /^\/([a-z0-9][a-z0-9_.-]{0,59}(?:~[0-9a-f]{72})?)\/\d{0,14}([a-z]+_)(?:\/|\||%7c)/i;
  const PAGES = new Set(["mp_", "if_", "fr_", "oe_"]);
  const SCRIPTS = ["/static/wombat.js", "/static/wombatWorkers.js", "/static/proxy/" + settings.script];

  async function answer(event) {
    const { request } = event;
    // wabac.js would pass some of these on to the live web.
    if (!request.url.startsWith(origin + "/")) return Response.error();
    if (!isForWorker(request)) return fetch(request);
    if (request.mode === "navigate" && !(await isOwn(request.url.slice(origin.length)))) return sealed(elsewhere(request.url), request);
    return sealed(await worker().handleFetch(event), request);
  }

  function isForWorker(request) {
    const path = request.url.slice(origin.length);
    const archived = ARCHIVED.exec(path);
    if (request.mode !== "navigate") return archived !== null || SCRIPTS.includes(path);
    // A page alone in its window could go anywhere: the server redirects it to its frame.
    return archived !== null && PAGES.has(archived[2]) && request.destination !== "document";
  }

  const hosts = new Map();

  // Whether a page belongs to the site of this origin: a redirect or a script may lead to another one. The server says so by redirecting
  // it to its own. Frames in a page (`if_`, `fr_`, `oe_`) may be of any site, and what a page has written itself is of its own.
  async function isOwn(path) {
    const [start, , modifier] = ARCHIVED.exec(path);
    const url = path.slice(start.length);
    if (modifier !== "mp_" || /^(about|blob|srcdoc):/i.test(url)) return true;
    const [host] = /^[a-z]*:?\/*[^/?#]*/i.exec(url);
    if (!hosts.has(host)) {
      const said = await fetch("/-/start" + path, { redirect: "manual", credentials: "omit" });
      hosts.set(host, said.type !== "opaqueredirect");
    }
    return hosts.get(host);
  }

  // The frame page opens a page of another site on its own origin; inside another page it stays here.
  function elsewhere(address) {
    const [, stamp, url] = /\/(\d*)mp_\/(.*)$/i.exec(address);
    const values = JSON.stringify({ wb_type: "load", url, ts: stamp, inside: address.replace(/(\/\d*)mp_\//i, "$1if_/") });
    const script = `const page = ${values.replaceAll("<", "\\u003c")};
      if (window.parent === window.top) window.top.postMessage(page, "*");
      else location.replace(page.inside);`;
    return new Response(`<!doctype html><script>${script}</script>`, { headers: { "Content-Type": "text/html; charset=utf-8" } });
  }

  function sealed(response, request) {
    if (response.type !== "default" && response.type !== "basic") return response;
    const headers = new Headers(response.headers);
    if (request.destination === "") restoreHeaders(headers);
    for (const [name, value] of settings.headers) headers.set(name, value);
    const { body, status, statusText } = response;
    return new Response(body, { status, statusText, headers });
  }

  // Archived headers under their own names, for scripts that read them: in such an answer no browser acts on them.
  function restoreHeaders(headers) {
    for (const [name, value] of [...headers]) {
      const original = name.startsWith(settings.prefix) ? name.slice(settings.prefix.length) : "";
      if (original && !headers.has(original)) headers.set(original, value);
    }
  }

  const collections = new Map();
  let prepared = null;

  // wabac.js, with collections from here instead of its database.
  function worker() {
    if (prepared) return prepared;
    prepared = self.sw;
    // Runs first in every archived document, before the rewriting script.
    const rewriting = prepared.staticData.get(origin + SCRIPTS[0]);
    rewriting.content = settings.first + rewriting.content;
    prepared.collections.inited = Promise.resolve(true);
    prepared.collections.getColl = (name) => {
      if (!collections.has(name)) collections.set(name, collection(name));
      return collections.get(name);
    };
    return prepared;
  }

  async function collection(name) {
    const extraConfig = { prefix: "", isLive: false, archivePrefix: "/" + name + "/", archiveMod: "sw_", noPostToGet: false };
    const made = await self.sw.collections._initColl({ name, type: "live", config: { sourceUrl: "proxy:", extraConfig } });
    const { store } = made;
    const getResource = store.getResource.bind(store);
    store.getResource = async (request, prefix) => {
      const prepare = request.prepareProxyRequest.bind(request);
      request.prepareProxyRequest = (...given) => ({ ...prepare(...given), headers: toServer(request), credentials: "omit" });
      const response = await getResource(request, prefix);
      if (response) response.extraOpts = { pixelRatio };
      return response;
    };
    return made;
  }

  // wabac.js writes a number into each page, 2 if it is told none, as what `devicePixelRatio` is there. This one is written as a piece of
  // script: the reader's own; `archived_page.js` makes it follow the reader's zoom.
  const pixelRatio = {
    valueOf: () => 1,
    toString: () => '(wbinfo.ratio = Object.getOwnPropertyDescriptor(window, "devicePixelRatio"), devicePixelRatio)',
  };

  // What the server is told of a request: nothing that a page wrote, but for the kind and the part of what it wants.
  function toServer(request) {
    const headers = new Headers({ "X-Replay-Destination": request.destination || "empty" });
    for (const name of ["Accept", "Content-Type", "Range"]) {
      const value = request.headers.get(name);
      if (value) headers.set(name, value);
    }
    return headers;
  }
})(self.webdepot);
