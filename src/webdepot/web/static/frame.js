// The frame around an archived page: the time bar's handle, and a banner that follows the reader through links.
"use strict";

(function () {
  const place = document.getElementById("banner-place");
  const frame = document.getElementById("frame");
  const replay = place.dataset.replay;
  const collection = place.dataset.collection;
  let leavingFor = "";
  let blocked = 0;
  let asked = 0;

  const shown = () => place.querySelector(".banner-inner").dataset;

  function timeOf(stamp) {
    const [year, month = 1, day = 1, hour = 0, minute = 0, second = 0] = stamp.match(/^\d{4}|\d\d/g).map(Number);
    return new Date(Date.UTC(2000, month - 1, day, hour, minute, second)).setUTCFullYear(year, month - 1, day);
  }

  function words(stamp) {
    const form = { year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC" };
    const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
    return new Intl.DateTimeFormat(language, form).format(new Date(timeOf(stamp)));
  }

  // The first moment behind a bar, whose label is a year or a month.
  function endOf(label) {
    const [year, month] = label.split("-").map(Number);
    return month ? new Date(timeOf(label)).setUTCMonth(month) : timeOf(String(year + 1).padStart(4, "0"));
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
    handle.hidden = false;
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

  function setTitle(title) {
    const heading = place.querySelector(".page-title");
    if (title && heading && !place.querySelector(".missing")) heading.textContent = title;
    const when = place.querySelector(".when strong");
    document.title = [heading.textContent, when && when.textContent, place.dataset.archive].filter(Boolean).join(" · ");
  }

  async function follow(url, stamp, title) {
    const turn = ++asked;
    const path = "/" + collection + "/" + stamp + "/" + url.split("#")[0];
    const answer = await fetch("/-/banner" + path);
    const text = await answer.text();
    if (turn !== asked || !(answer.ok || answer.status === 404)) return;
    const part = new DOMParser().parseFromString(text, "text/html").querySelector(".banner-inner");
    if (!part) return;
    if ("viewer" in part.dataset && frame.hasAttribute("sandbox")) {
      location.assign(part.dataset.path);
      return;
    }
    place.replaceChildren(document.adoptNode(part));
    history.replaceState(null, "", part.dataset.path || path);
    blocked = 0;
    setTitle(title);
    wireHandle();
  }

  function stampOf(message) {
    return /^\d{14}$/.test(message.ts) ? message.ts : shown().timestamp || /\/(\d{14})\//.exec(location.pathname)[1];
  }

  window.addEventListener("message", (event) => {
    const message = event.data;
    if (event.origin !== replay || !message || typeof message !== "object") return;
    if (message.webdepot === "blocked") {
      blocked += 1;
      showBlocked();
      return;
    }
    if (event.source !== frame.contentWindow) return;
    if (message.webdepot === "leaving") {
      leavingFor = String(message.url);
    } else if (message.wb_type === "load" && typeof message.url === "string") {
      leavingFor = "";
      const stamp = stampOf(message);
      if (message.url.split("#")[0] !== shown().url || (shown().timestamp && stamp !== shown().timestamp)) follow(message.url, stamp, message.title);
      else setTitle(message.title);
    } else if (message.wb_type === "title") {
      setTitle(String(message.title));
    }
  });

  // Pictures, texts and documents have no script that speaks: the click that led to them must do.
  frame.addEventListener("load", () => {
    const url = leavingFor;
    leavingFor = "";
    if (/^https?:\/\//.test(url) && shown().timestamp) follow(url, shown().timestamp, "");
  });

  wireHandle();
})();
