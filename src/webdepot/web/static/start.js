// Makes sure that the replay worker is there and knows the collection, then goes on to the archived page.
"use strict";

const told = document.documentElement.dataset;

function fail(error) {
  console.error(error);
  document.getElementById("loading").hidden = true;
  document.getElementById("failed").hidden = false;
  // The page as a still picture, rewritten by the server, is better than words.
  location.replace(told.still);
}

function controlled() {
  if (navigator.serviceWorker.controller) return Promise.resolve();
  return new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
}

function knowsCollection(worker) {
  const key = "collection " + told.collection;
  const isKnown = localStorage.getItem(key) === told.config;
  const added = new Promise((resolve) => {
    navigator.serviceWorker.addEventListener("message", (event) => {
      if (event.data.msg_type === "collAdded" && event.data.name === told.collection) resolve();
    });
  });
  worker.postMessage({
    msg_type: "addColl",
    name: told.collection,
    type: "live",
    skipExisting: isKnown,
    file: { sourceUrl: "proxy:" },
    extraConfig: {
      prefix: "",
      isLive: false,
      archivePrefix: "/" + told.collection + "/",
      archiveMod: "sw_",
      baseUrl: told.portal + "/" + told.collection + "/",
      baseUrlAppendReplay: true,
      noPostToGet: false,
      csp: told.policy,
    },
  });
  return added.then(() => localStorage.setItem(key, told.config));
}

async function begin() {
  if (window.top === window) {
    location.replace(told.portal + told.target.replace("mp_/", "/"));
    return;
  }
  await navigator.serviceWorker.register(told.worker, { scope: "/", updateViaCache: "none" });
  const registration = await navigator.serviceWorker.ready;
  await Promise.all([controlled(), knowsCollection(registration.active)]);
  location.replace(told.target);
}

if ("serviceWorker" in navigator) begin().catch(fail);
else fail("no service workers here");
