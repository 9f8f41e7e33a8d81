function heard(port) {
  return new Promise(function (yes, no) {
    port.onmessage = function (event) { yes(event.data); };
    port.onerror = function (event) { no(new Error("worker: " + event.message)); };
  });
}
probe("worker: classic, with importScripts and fetch", function () {
  return heard(new Worker("/js/worker.js")).then(function (said) { return said === "imported fetched" || said; });
});
probe("worker: module", function () {
  return heard(new Worker("/js/module-worker.js", { type: "module" })).then(function (said) { return said === "module leaf" || said; });
});
probe("worker: importScripts in an imported script", function () {
  return heard(new Worker("/js/nesting-worker.js")).then(function (said) { return said === "one two three" || said; });
});
probe("worker: module with nested and late imports", function () {
  return heard(new Worker("/js/nesting-module-worker.js", { type: "module" })).then(function (said) { return said === "through leaf late" || said; });
});
probe("worker: from a blob", function () {
  var blob = new Blob(["postMessage('blob')"], { type: "text/javascript" });
  return heard(new Worker(URL.createObjectURL(blob))).then(function (said) { return said === "blob"; });
});
probe("worker: shared", function () {
  var shared = new SharedWorker("/js/shared.js");
  shared.port.start();
  return heard(shared.port).then(function (said) { return said === "shared"; });
});
probe("worker: address", function () {
  return heard(new Worker("/js/where.js")).then(function (said) { return said === "http://www.probe.example/js/where.js" || said; });
});
probe("worker: service worker of the site", function () {
  if (!navigator.serviceWorker) return true;
  // It must not break the page; whether it runs is another matter.
  return Promise.race([
    navigator.serviceWorker.register("/service.js").then(function () { return true; }, function () { return true; }),
    new Promise(function (yes) { setTimeout(yes, 1000, true); }),
  ]);
});
probe("storage: local", function () {
  localStorage.setItem("a", "1");
  localStorage.b = "2";
  return localStorage.getItem("a") === "1" && localStorage.getItem("b") === "2" && localStorage.length >= 2;
});
probe("storage: session", function () { sessionStorage.setItem("a", "1"); return sessionStorage.a === "1"; });
probe("storage: cookies", function () {
  document.cookie = "first=1; path=/";
  document.cookie = "second=2; path=/; domain=probe.example";
  return (/first=1/.test(document.cookie) && /second=2/.test(document.cookie)) || document.cookie;
});
probe("storage: IndexedDB", function () {
  return new Promise(function (yes, no) {
    var opening = indexedDB.open("probe", 1);
    opening.onupgradeneeded = function () { opening.result.createObjectStore("things"); };
    opening.onerror = function () { no(opening.error); };
    opening.onsuccess = function () {
      var going = opening.result.transaction("things", "readwrite");
      going.objectStore("things").put("value", "key");
      var asked = going.objectStore("things").get("key");
      asked.onsuccess = function () { yes(asked.result === "value"); };
    };
  });
});
probe("storage: caches", function () {
  return caches.open("probe").then(function (cache) {
    return cache.put("/made.txt", new Response("made")).then(function () { return cache.match("/made.txt"); });
  }).then(function (answer) { return answer.text(); }).then(function (text) { return text === "made"; });
});
probe("storage: addresses of blobs", function () {
  var url = URL.createObjectURL(new Blob(["<p>x"], { type: "text/html" }));
  return fetch(url).then(function (answer) { return answer.text(); }).then(function (text) { return text === "<p>x"; });
});
probe("storage: broadcast channel", function () {
  var said = heard(new BroadcastChannel("probe"));
  new BroadcastChannel("probe").postMessage("to all");
  return said.then(function (words) { return words === "to all"; });
});
