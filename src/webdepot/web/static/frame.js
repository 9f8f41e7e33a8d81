// The frame around an archived page: the time bar's handle, and a banner that follows the reader through links.
"use strict";

(function () {
  const place = document.getElementById("banner-place");
  let frame = document.getElementById("frame");
  const replay = new URL(frame.src).origin; // of this site; a page of another one needs another policy, so another frame page
  const collection = place.dataset.collection;
  let wanted = {};
  let blocked = 0;
  let asked = 0;
  let awaited = "";
  let announced = "";
  let moving = 0;
  let title = "";
  let opened = newName();
  let parts = new Map();
  let canPrint = false;

  // Parts within a day of the page belong to it: harvests take their time. What is farther away is told, beyond a month as a warning.
  const DAY_MS = 86400e3;
  const FAR_MS = 31 * DAY_MS;
  const MOST_PARTS = 2000;
  const MOST_LISTED = 40;
  // Scripts may change the address with every movement of the page.
  const MOVE_PAUSE_MS = 150;
  const MOST_HEIGHT = 100000;

  const shown = () => place.querySelector(".banner-inner").dataset;

  // Marks the entries of the history that belong to one frame element.
  function newName() {
    return crypto.getRandomValues(new Uint32Array(2)).join("-");
  }

  function timeOf(stamp) {
    const [year, month = 1, day = 1, hour = 0, minute = 0, second = 0] = stamp.match(/^\d{4}|\d\d/g).map(Number);
    return new Date(Date.UTC(2000, month - 1, day, hour, minute, second)).setUTCFullYear(year, month - 1, day);
  }

  function words(stamp) {
    const form = { year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC" };
    const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
    return new Intl.DateTimeFormat(language, form).format(new Date(timeOf(stamp))) + " UTC";
  }

  // The first moment behind a bar, whose label is a year or a month.
  function endOf(label) {
    const [year, month] = label.split("-").map(Number);
    return month ? new Date(timeOf(label)).setUTCMonth(month) : timeOf(String(year + 1).padStart(4, "0"));
  }

  function wireBack() {
    const link = place.querySelector("a[data-back]");
    const search = sessionStorage.getItem("search") || "";
    if (link && search.startsWith("/search?")) link.href = new URL(link.href).origin + search;
  }

  function wireHandle() {
    const handle = place.querySelector("input[type=range]");
    if (!handle) return;
    const stamps = handle.dataset.stamps.split(" ");
    const times = stamps.map(timeOf);
    const when = place.querySelector(".when strong");
    let at = stamps.indexOf(handle.dataset.now);
    let going = 0;
    handle.min = timeOf(handle.dataset.from);
    handle.max = endOf(handle.dataset.to);
    handle.value = times[at];
    handle.classList.add("ready");
    if (sessionStorage.getItem("handle")) {
      sessionStorage.removeItem("handle");
      handle.focus();
    }
    function show(index) {
      at = Math.min(Math.max(index, 0), stamps.length - 1);
      handle.value = times[at];
      const text = words(stamps[at]);
      handle.setAttribute("aria-valuetext", text);
      when.textContent = text;
    }
    function go() {
      clearTimeout(going);
      if (stamps[at] === handle.dataset.now) return;
      going = setTimeout(() => {
        sessionStorage.setItem("handle", "focus");
        location.assign(handle.dataset.prefix + stamps[at] + "/" + handle.dataset.url);
      }, 350);
    }
    handle.addEventListener("input", () => {
      const wanted = Number(handle.value);
      let best = 0;
      times.forEach((time, index) => {
        if (Math.abs(time - wanted) < Math.abs(times[best] - wanted)) best = index;
      });
      show(best);
    });
    handle.addEventListener("change", go);
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
    handle.addEventListener("keydown", (event) => {
      if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      show(at + steps[event.key]);
      go();
    });
  }

  function showBlocked() {
    const note = place.querySelector(".blocked");
    if (!note || !blocked) return;
    note.textContent = (blocked === 1 ? note.dataset.one : note.dataset.other).replace("{count}", blocked);
    note.hidden = false;
  }

  function distance(apart) {
    const days = Math.round(apart / DAY_MS);
    const [count, unit] = days < 60 ? [days, "day"] : days < 730 ? [Math.round(days / 30.44), "month"] : [Math.round(days / 365.25), "year"];
    return new Intl.NumberFormat(document.documentElement.lang, { style: "unit", unit, unitDisplay: "long" }).format(count);
  }

  function showDrift() {
    const note = place.querySelector(".drift");
    const now = shown().timestamp;
    if (!note || !now) return;
    const far = [...parts]
      .map(([url, stamp]) => ({ url, stamp, apart: Math.abs(timeOf(stamp) - timeOf(now)) }))
      .filter((part) => part.apart > DAY_MS)
      .sort((one, other) => other.apart - one.apart);
    note.hidden = !far.length;
    if (!far.length) return;
    note.classList.toggle("far", far[0].apart > FAR_MS);
    const words_ = far.length === 1 ? note.dataset.one : note.dataset.other;
    note.querySelector("summary").textContent = words_.replace("{count}", far.length).replace("{distance}", distance(far[0].apart));
    note.querySelector("ol").replaceChildren(
      ...far.slice(0, MOST_LISTED).map((part) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = note.dataset.versions + part.url;
        link.textContent = part.url;
        item.append(words(part.stamp) + " ", link);
        return item;
      }),
    );
  }

  // Fields of the sheet are copied when they are chosen; other programs get the address through the system's own sheet.
  function wireSheet() {
    for (const field of place.querySelectorAll("[data-copied]")) {
      field.addEventListener("click", async () => {
        field.select();
        if (!navigator.clipboard) return;
        await navigator.clipboard.writeText(field.value);
        field.parentElement.dataset.done = field.dataset.copied;
      });
    }
    const out = place.querySelector(".share-out");
    if (out && navigator.share) {
      out.hidden = false;
      out.addEventListener("click", () => navigator.share({ title: out.dataset.title, url: out.dataset.url }).catch(() => {}));
    }
  }

  // The archived page prints itself, so that all of it is printed, with one line about its source. A page without our script (a PDF file)
  // is printed by the browser, with the sheet for printing.
  function printPage() {
    const source = place.querySelector(".source");
    frame.contentWindow.postMessage({ webdepot: "print", source: source ? source.textContent : "" }, replay);
  }

  function wirePrint() {
    const out = place.querySelector(".print-out");
    if (!out || out.classList.contains("ready") || !canPrint) return;
    out.classList.add("ready");
    out.addEventListener("click", printPage);
  }

  const isPrintKey = (event) => (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "p";
  document.addEventListener("keydown", (event) => {
    if (!canPrint || !isPrintKey(event)) return;
    event.preventDefault();
    printPage();
  });

  function setTitle() {
    const heading = place.querySelector(".page-title");
    if (title && heading && !place.querySelector(".missing")) heading.textContent = title;
    const when = place.querySelector(".when strong");
    document.title = [heading.textContent, when && when.textContent, place.dataset.archive].filter(Boolean).join(" · ");
  }

  // The address above the page is what this script asked for, never what the page says it is: it could say anything. A page that says it
  // is another one gets its wish: the frame is thrown away, and a new one opens that address.
  async function follow(address, stamp, remember) {
    const [url, fragment] = address.split("#", 2);
    const path = "/" + collection + "/" + stamp + "/" + url;
    if (path === awaited) return;
    awaited = path;
    const part = await bannerOf(path).finally(() => {
      if (awaited === path) awaited = "";
    });
    if (!part) return;
    const isElsewhere = new URL(part.dataset.start).origin !== replay;
    if (isElsewhere || "viewer" in part.dataset || "sign" in part.dataset || !frame.hasAttribute("sandbox")) {
      leave(part.dataset.sign || part.dataset.path || path, remember === asNewEntry);
      return;
    }
    opened = newName();
    announced = title = "";
    blocked = 0;
    canPrint = false;
    parts = new Map();
    showBanner(part, url, stamp);
    remember(part.dataset.path || path);
    openFrame(part.dataset.start + (fragment ? "#" + fragment : ""));
  }

  // The banner of an address; null if another one was asked for meanwhile, or if the answer is a page without a banner. What is missing,
  // closed or in use has one.
  async function bannerOf(path) {
    clearTimeout(moving);
    const turn = ++asked;
    const answer = await fetch("/-/banner" + path);
    const text = await answer.text();
    if (turn !== asked) return null;
    return new DOMParser().parseFromString(text, "text/html").querySelector(".banner-inner");
  }

  function showBanner(part, url, stamp) {
    place.replaceChildren(document.adoptNode(part));
    wanted = { url, stamp };
    setTitle();
    wireHandle();
    wireSheet();
    wirePrint();
    wireBack();
  }

  // A script of the page has changed its address without loading another page. The banner moves with it, but only within the site that
  // this script has opened: as on the live web, where a page cannot take the address of another site either.
  function move(url) {
    if (awaited || originOf(url) !== originOf(shown().url)) return;
    announced = url;
    clearTimeout(moving);
    if (isShown(url, stampHere())) showUnkept("");
    else moving = setTimeout(moveBanner, MOVE_PAUSE_MS, url, stampHere());
  }

  async function moveBanner(url, stamp) {
    const part = await bannerOf("/" + collection + "/" + stamp + "/" + url);
    if (!part || url !== announced) return;
    if (!part.dataset.timestamp || Number(part.dataset.status) >= 400 || "viewer" in part.dataset) {
      showUnkept(url);
      return;
    }
    showBanner(part, url, stamp);
    asThisEntry(part.dataset.path);
    showBlocked();
    showDrift();
  }

  // What scripts show under an address that was not captured by itself: the banner stays that of the page that was opened.
  function showUnkept(url) {
    const note = place.querySelector(".unkept");
    if (!note) return;
    note.hidden = !url;
    note.querySelector("code").textContent = url;
  }

  function originOf(url) {
    return URL.canParse(url) ? new URL(url).origin : null;
  }

  function leave(address, isNewEntry) {
    frame.remove(); // it has no say in whether it is left
    if (isNewEntry) location.assign(address);
    else location.replace(address);
  }

  function openFrame(start) {
    const fresh = frame.cloneNode(false);
    fresh.src = start;
    frame.replaceWith(fresh);
    frame = fresh;
  }

  const asNewEntry = (path) => history.pushState({ opened }, "", path);
  const asThisEntry = (path) => history.replaceState({ opened }, "", path);

  function stampOf(message) {
    return /^\d{14}$/.test(message.ts) ? message.ts : stampHere();
  }

  const stampHere = () => shown().timestamp || /\/(\d{14})\//.exec(location.pathname)[1];

  function isShown(url, stamp) {
    const now = shown();
    const isUrl = url === now.url || url === wanted.url;
    return isUrl && (!now.timestamp || stamp === now.timestamp || stamp === wanted.stamp);
  }

  window.addEventListener("message", (event) => {
    const message = event.data;
    if (event.origin !== replay || !message || typeof message !== "object") return;
    if (message.webdepot === "blocked") {
      blocked += 1;
      showBlocked();
      return;
    }
    if (message.webdepot === "parts" && Array.isArray(message.parts)) {
      for (const [url, stamp] of message.parts) {
        if (parts.size < MOST_PARTS && /^\d{14}$/.test(stamp) && /^https?:\/\//.test(url)) parts.set(url, stamp);
      }
      showDrift();
      return;
    }
    const url = typeof message.url === "string" ? message.url.split("#")[0] : "";
    if (message.webdepot === "go" && isInFrame(event.source) && /^https?:\/\//.test(url)) {
      follow(message.url, stampHere(), asNewEntry);
      return;
    }
    if (event.source !== frame.contentWindow) return;
    if (message.webdepot === "height" && message.height > 0) {
      frame.style.setProperty("--page-height", Math.min(message.height, MOST_HEIGHT) + "px");
      canPrint = true;
      wirePrint();
      return;
    }
    if (message.webdepot === "print") {
      printPage();
      return;
    }
    if (message.wb_type === "load" && url) {
      const stamp = stampOf(message);
      if (url !== announced && !isShown(url, stamp)) {
        follow(url, stamp, asThisEntry);
        return;
      }
    } else if (message.wb_type === "replace-url" && url) {
      move(url);
    }
    if (["load", "title"].includes(message.wb_type) && message.title) {
      title = String(message.title);
      setTitle();
    }
  });

  function isInFrame(source) {
    for (let at = source; at && at !== window; at = at.parent) if (at === frame.contentWindow) return true;
    return false;
  }

  // The way back. Entries of the frame that is open are in-page navigation, which it undoes itself.
  window.addEventListener("popstate", (event) => {
    const here = /^\/[^/]+\/(\d{14})\/(.+)$/.exec(location.pathname + location.search);
    if (!here || isShown(here[2], here[1])) return;
    if (event.state && event.state.opened === opened) move(here[2]);
    else follow(here[2], here[1], asThisEntry);
  });

  // Where one reader at a time may see a page, it is held while it is open and given back when it is left.
  const seatOf = (step) => "/-/" + step + "/" + collection + "/" + shown().timestamp + "/" + shown().url;
  setInterval(() => {
    if ("lent" in shown()) fetch(seatOf("seat"), { method: "POST" });
  }, 45e3);
  window.addEventListener("pagehide", () => {
    if ("lent" in shown()) navigator.sendBeacon(seatOf("left"));
  });

  // A click beside an open sheet, or Escape, closes it.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") place.querySelectorAll("details[open]").forEach((sheet) => sheet.removeAttribute("open"));
  });
  window.addEventListener("blur", () => place.querySelectorAll("details[open]").forEach((sheet) => sheet.removeAttribute("open")));

  // The search that led here, in the fragment of the link: "Back to search" returns to it, also from pages opened later.
  const SEARCH = "#search=";
  if (location.hash.startsWith(SEARCH)) {
    try {
      sessionStorage.setItem("search", decodeURIComponent(location.hash.slice(SEARCH.length)));
    } catch (error) {
      console.warn(error); // not from our search page
    }
    history.replaceState(history.state, "", location.pathname + location.search);
  }
  asThisEntry(location.href);
  // What follows `#` is for the page: a place in it, a route of an app, or the query without which it was archived (see `archived_page.js`).
  const passFragment = () => location.hash && openFrame(shown().start + location.hash);
  window.addEventListener("hashchange", passFragment);
  passFragment();
  wireHandle();
  wireSheet();
  wireBack();
})();
