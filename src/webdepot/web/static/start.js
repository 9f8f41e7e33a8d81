// Installs the replay worker if necessary, then opens the archived page.
"use strict";

const told = document.documentElement.dataset;
const PATIENCE_MS = 15e3;

function fail(error) {
  console.error(error);
  document.getElementById("loading").hidden = true;
  document.getElementById("failed").hidden = false;
  // The page as a still picture, rewritten by the server, is better than words.
  location.replace(told.still);
}

// Archived scripts may register the same worker, too, for a part of the site or with a query: it does the same, but it may be of an
// earlier version of this server.
async function removeOthers() {
  for (const one of await navigator.serviceWorker.getRegistrations()) {
    if (new URL(one.scope).pathname !== "/") await one.unregister();
  }
}

function isCurrent(registration) {
  const { active } = registration;
  return active !== null && active.state === "activated" && active.scriptURL === new URL(told.worker, location.href).href;
}

async function installed() {
  const registration = await navigator.serviceWorker.register(told.worker, { scope: "/", updateViaCache: "none" });
  const until = Date.now() + PATIENCE_MS;
  while (!isCurrent(registration) && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
  if (!registration.active) throw new Error("the worker was not installed");
}

// What earlier pages have stored, they may have stored for this one: the pages of a site, and the frames of others in them, are of one
// origin. Cookies stay, as on the live web. While another page is open everything is left alone.
async function forget() {
  const { held } = await navigator.locks.query();
  if (held.some((lock) => lock.name === "archived page")) return;
  const cookies = localStorage.getItem("webdepot cookies");
  localStorage.clear();
  if (cookies) localStorage.setItem("webdepot cookies", cookies);
  sessionStorage.clear();
  for (const name of await caches.keys()) await caches.delete(name);
  const folder = await navigator.storage.getDirectory();
  for await (const name of folder.keys()) await folder.removeEntry(name, { recursive: true });
  for (const { name } of await indexedDB.databases()) {
    await new Promise((resolve) => {
      const request = indexedDB.deleteDatabase(name);
      request.onsuccess = request.onerror = request.onblocked = resolve;
    });
  }
}

async function begin() {
  if (window.top === window) {
    location.replace(told.portal + told.target.replace("mp_/", "/"));
    return;
  }
  await removeOthers();
  await Promise.all([installed(), forget().catch(console.warn)]);
  location.replace(told.target + location.hash);
}

if ("serviceWorker" in navigator) begin().catch(fail);
else fail("no service workers here");
