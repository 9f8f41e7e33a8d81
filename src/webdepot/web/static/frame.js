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

  function dateOf(stamp) {
    const [, year, month, day, hour, minute] = stamp.match(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)/);
    const date = new Date(Date.UTC(2000, month - 1, day, hour, minute));
    date.setUTCFullYear(year);
    const form = { year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC" };
    return new Intl.DateTimeFormat(document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang, form).format(date);
  }

  function wireHandle() {
    const handle = place.querySelector("input[type=range]");
    if (!handle) return;
    const stamps = handle.dataset.stamps.split(" ");
    const when = place.querySelector(".when strong");
    let going = 0;
    handle.hidden = false;
    if (sessionStorage.getItem("handle")) {
      sessionStorage.removeItem("handle");
      handle.focus();
    }
    handle.addEventListener("input", () => {
      const words = dateOf(stamps[handle.value]);
      handle.setAttribute("aria-valuetext", words);
      when.textContent = words;
    });
    handle.addEventListener("change", () => {
      clearTimeout(going);
      going = setTimeout(() => {
        sessionStorage.setItem("handle", "focus");
        location.assign(handle.dataset.prefix + stamps[handle.value] + "/" + handle.dataset.url);
      }, 350);
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
