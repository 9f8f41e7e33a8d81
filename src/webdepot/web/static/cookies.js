// Runs first in every archived document: gives it cookies of its own.
//
// A page can set a cookie of the browser for the parent of its host, and thereby for all archived sites. So archived pages get a jar
// instead, in the storage of their host, which no other site reaches: `document.cookie` reads and writes there, and `cookieStore` is
// taken out. Domain, Path, Expires and Max-Age are those of the archived page (RFC 6265, 5); the clock is that of the page, too, which
// the rewriting script sets to the time of the capture.
(function () {
  "use strict";
  const KEY = "webdepot cookies";
  const MOST = 180;
  const LONGEST = 4096;
  const SESSION_MS = 86400e3; // without a date, a cookie lives as long as the browser; here, for a day
  const { Date, JSON } = window;
  const ARCHIVED = /^https?:\/\/[^/]+\/[^/]+\/\d*[a-z]+_\/https?:\/*([^/?#:@]+|\[[^\]]*\])(?::\d+)?(\/[^?#]*)?/i;

  let storage = null;
  let kept = "[]";
  try {
    storage = window.localStorage;
  } catch {
    // a document without storage: its cookies live as long as itself
  }

  function load() {
    try {
      const cookies = JSON.parse((storage ? storage.getItem(KEY) : kept) || "[]");
      return Array.isArray(cookies) ? cookies.filter((cookie) => cookie.until > Date.now()) : [];
    } catch {
      return [];
    }
  }

  function store(cookies) {
    kept = JSON.stringify(cookies.slice(-MOST));
    try {
      if (storage) storage.setItem(KEY, kept);
    } catch {
      // full
    }
  }

  // Host and path of the archived page; of blank pages and of those that scripts write, those of the page around them.
  function here(from) {
    const found = ARCHIVED.exec(from.location.href);
    if (found) return { host: found[1].toLowerCase(), path: found[2] || "/" };
    return from.parent === from || from.parent === window.top ? null : here(from.parent);
  }

  const isBelow = (host, domain) => host === domain || host.endsWith("." + domain);
  const isInside = (path, folder) => path === folder || path.startsWith(folder.endsWith("/") ? folder : folder + "/");

  function read() {
    const page = here(window);
    if (!page) return "";
    return load()
      .filter((cookie) => (cookie.isWide ? isBelow(page.host, cookie.host) : page.host === cookie.host) && isInside(page.path, cookie.path))
      .sort((one, other) => other.path.length - one.path.length)
      .map((cookie) => (cookie.name ? cookie.name + "=" : "") + cookie.value)
      .join("; ");
  }

  function write(text) {
    const page = here(window);
    const cookie = page && parse(String(text), page);
    if (!cookie) return;
    const isSame = (one) => one.name === cookie.name && one.host === cookie.host && one.path === cookie.path;
    const others = load().filter((one) => !isSame(one));
    store(cookie.until > Date.now() ? [...others, cookie] : others);
  }

  function parse(text, page) {
    const [pair, ...attributes] = text.split(";");
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(at, 0)).trim();
    const value = pair.slice(at + 1).trim();
    // eslint-disable-next-line no-control-regex
    if (name.length + value.length > LONGEST || !(name || value) || /[\x00-\x08\x0a-\x1f\x7f]/.test(text)) return null;
    const folder = page.path.slice(0, page.path.lastIndexOf("/")) || "/";
    const cookie = { name, value, host: page.host, isWide: false, path: folder, until: Date.now() + SESSION_MS };
    const given = new Map(attributes.map((one) => [one.split("=", 1)[0].trim().toLowerCase(), one.slice(one.indexOf("=") + 1).trim()]));
    if (given.has("httponly")) return null;
    const domain = (given.get("domain") || "").replace(/^\./, "").toLowerCase();
    if (domain && !isBelow(page.host, domain)) return null;
    if (domain) Object.assign(cookie, { host: domain, isWide: true });
    if ((given.get("path") || "").startsWith("/")) cookie.path = given.get("path");
    const expires = Date.parse(given.get("expires"));
    const seconds = /^-?\d+$/.test(given.get("max-age")) ? Number(given.get("max-age")) : NaN;
    if (!isNaN(seconds)) cookie.until = Date.now() + seconds * 1000;
    else if (!isNaN(expires)) cookie.until = expires + (window.Date.__WB_timediff || 0);
    return cookie;
  }

  const jar = { configurable: true, enumerable: true, get: read, set: write };
  Object.defineProperty(Document.prototype, "cookie", jar);
  delete window.cookieStore;

  // Blank frames have no script like this. The rewriting script leaves alone what cannot be configured.
  for (const kind of [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement]) {
    for (const name of ["contentWindow", "contentDocument"]) {
      const known = Object.getOwnPropertyDescriptor(kind.prototype, name);
      if (!known) continue;
      Object.defineProperty(kind.prototype, name, {
        ...known,
        get() {
          const inner = known.get.call(this);
          if (inner) withJar(inner);
          return inner;
        },
      });
    }
  }

  function withJar(inner) {
    try {
      const document = inner.document || inner;
      if (document.defaultView.location.href !== "about:blank" || Object.hasOwn(document, "cookie")) return;
      Object.defineProperty(document, "cookie", { ...jar, configurable: false });
      delete document.defaultView.cookieStore;
    } catch {
      // another origin, or no window any more
    }
  }
})();
