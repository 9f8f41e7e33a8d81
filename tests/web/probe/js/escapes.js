// Every way out of the archive that a page has, taken by an ordinary script. What comes of it is seen at the proxy, not here.
var live = "http://live.example/script-";
var made = [];
function attempt(name, way) {
  made.push(name);
  try { var later = way(); if (later && later.catch) later.catch(function () {}); } catch (error) { /* refused */ }
}
attempt("fetch", function () { return fetch(live + "fetch", { mode: "no-cors" }); });
attempt("fetch that outlives the page", function () { return fetch(live + "keepalive", { method: "POST", body: "x", keepalive: true, mode: "no-cors" }); });
attempt("XMLHttpRequest", function () { var asked = new XMLHttpRequest(); asked.open("GET", live + "xhr"); asked.send(); });
attempt("beacon", function () { navigator.sendBeacon(live + "beacon", "x"); });
attempt("socket", function () { new WebSocket("ws://live.example/script-socket"); });
attempt("safe socket", function () { new WebSocket("wss://live.example/script-wss"); });
attempt("events", function () { new EventSource(live + "events"); });
attempt("image", function () { new Image().src = live + "image.png"; });
attempt("audio", function () { new Audio(live + "audio.mp3").play(); });
attempt("import", function () { return import(live + "import.js"); });
attempt("worker", function () { new Worker(live + "worker.js"); });
attempt("worker from a blob", function () {
  var code = "fetch('" + live + "blob-fetch', { mode: 'no-cors' }); importScripts('" + live + "blob-import.js');";
  new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
});
attempt("shared worker", function () { new SharedWorker(live + "shared.js"); });
attempt("service worker", function () { return navigator.serviceWorker.register(live + "service.js"); });
attempt("link to fetch ahead", function () {
  ["prefetch", "preload", "preconnect", "dns-prefetch", "prerender", "stylesheet", "icon", "manifest"].forEach(function (rel) {
    var link = document.createElement("link");
    link.rel = rel;
    link.as = "style";
    link.href = live + "link-" + rel;
    document.head.append(link);
  });
});
attempt("rules to fetch ahead", function () {
  var rules = document.createElement("script");
  rules.type = "speculationrules";
  rules.textContent = JSON.stringify({ prerender: [{ source: "list", urls: [live + "prerender"], eagerness: "immediate" }] });
  document.head.append(rules);
});
attempt("sheet", function () {
  var sheet = new CSSStyleSheet();
  sheet.replaceSync("html { background: url(" + live + "sheet.png) }");
  document.adoptedStyleSheets = [sheet];
});
attempt("font", function () { return new FontFace("Far", "url(" + live + "font.ttf)").load(); });
attempt("form", function () {
  var form = document.createElement("form");
  form.method = "post";
  form.action = live + "form";
  form.target = "form-out";
  document.body.append(form);
  form.submit();
});
attempt("frame", function () { var frame = document.createElement("iframe"); frame.src = live + "frame"; document.body.append(frame); });
attempt("frame that moves", function () {
  var frame = document.createElement("iframe");
  document.body.append(frame);
  frame.contentWindow.location.href = live + "frame-moves";
});
attempt("srcdoc", function () {
  var frame = document.createElement("iframe");
  frame.srcdoc = "<img src='" + live + "srcdoc.png'><meta http-equiv=refresh content='0; url=" + live + "srcdoc-refresh'>";
  document.body.append(frame);
});
attempt("document.write", function () {
  var frame = document.createElement("iframe");
  document.body.append(frame);
  frame.contentDocument.write("<img src='" + live + "written.png'><script src='" + live + "written.js'><\/script>");
});
attempt("ping", function () { byId("ping").click(); });
attempt("XSLT and entities", function () {
  new DOMParser().parseFromString("<?xml version='1.0'?><!DOCTYPE a SYSTEM '" + live + "entity.dtd'><a/>", "application/xml");
});
attempt("web transport", function () { return new WebTransport("https://127.0.0.1:" + UDP_PORT + "/").ready; });
function peer(kind) {
  var one = new kind({ iceServers: [{ urls: "stun:127.0.0.1:" + UDP_PORT }] });
  one.createDataChannel("x");
  return one.createOffer().then(function (offer) { return one.setLocalDescription(offer); });
}
attempt("peer connection", function () { return peer(RTCPeerConnection); });
attempt("peer connection of a blank frame", function () {
  var frame = document.createElement("iframe");
  document.body.append(frame);
  return peer(frame.contentWindow.RTCPeerConnection);
});
setTimeout(function () { document.documentElement.dataset.done = "yes"; }, 1500);

// Asked for at the end: these leave this page.
function leave() {
  attempt("window", function () { window.open(live + "window"); });
  attempt("top", function () { byId("top").click(); });
  attempt("top by script", function () { window["to" + "p"].location = live + "top"; });
}
