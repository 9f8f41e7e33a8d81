var early = import("./lib/early.js");
var called = function (words) { window.calledWith = words.answer; };
probe("script: document.write", function () { return came(byId("written-image"), 80); });
probe("script: document.write of a script", function () { return until(function () { return window.writtenScript === "came"; }); });
probe("script: module", function () { return until(function () { return window.mainModule === "leaf"; }); });
probe("script: inline module and its address", function () {
  return until(function () { return window.inlineModule; }).then(function (text) { return text.indexOf("leaf ") === 0 || text; });
});
probe("script: import map", function () { return until(function () { return window.mappedModule === "mapped far"; }); });
probe("script: nomodule is left out", function () { return window.neverScript === undefined; });
probe("script: dynamic import", function () {
  return import("/js/module/lazy.js").then(function (module) { return module.lazy === "lazy"; });
});
probe("script: dynamic import of a whole address", function () {
  return import("http://www.probe.example/js/module/" + "lazy.js?whole").then(function (module) { return module.lazy === "lazy"; });
});
probe("script: import.meta.url", function () {
  return import("/js/module/lazy.js").then(function (module) { return /\/js\/module\/lazy\.js$/.test(module.default) || module.default; });
});
probe("script: dynamic import by an import map, of a folder", function () {
  return import("lib/dyn.js").then(function (module) { return module.dyn() === "deep leaf object dyn.js" || module.dyn(); });
});
probe("script: dynamic import by an import map, in a module", function () {
  return until(function () { return window.lateModule; }).then(function (words) { return words === "deep leaf object dyn.js" || words; });
});
probe("script: dynamic import by an import map, of a name", function () { return import("mapped").then(function (module) { return module.mapped === "mapped"; }); });
probe("script: dynamic import relative to the script", function () {
  return early.then(function (module) { return module.early === "early /scripts.html" || module.early; });
});
probe("script: pixels of the reader's screen", function () { return matchMedia("(resolution: " + devicePixelRatio + "dppx)").matches || devicePixelRatio; });
probe("script: JSONP", function () { return until(function () { return window.calledWith === "jsonp"; }); });
probe("script: element made by script", function () {
  var made = document.createElement("script");
  made.src = "/js/made.js";
  document.body.append(made);
  return until(function () { return window.madeScript === "came"; });
});
probe("script: templates that texts and comments put beside themselves", function () {
  var template = document.createElement("template"), text = document.createTextNode(""), note = document.createComment("");
  byId("place").append(text, note);
  template.innerHTML = '<img src="/i/80.png" alt=""><a href="/plain.html">plain</a>';
  text.before(template.content.cloneNode(true));
  text.after(template.content.cloneNode(true), "words");
  note.replaceWith(template.content.cloneNode(true));
  var images = Array.from(byId("place").querySelectorAll("img")).slice(-3);
  return Promise.all(images.map(function (image) { return came(image, 80); })).then(function (all) {
    return images.length === 3 && all.every(function (each) { return each === true; }) || all.join();
  });
});
probe("script: eval", function () { return eval("location.href") === "http://www.probe.example/scripts.html" || eval("location.href"); });
probe("script: Function", function () {
  return new Function("return document.URL + ' ' + location.pathname")() === "http://www.probe.example/scripts.html /scripts.html" || new Function("return location.href")();
});
probe("script: a timer with text", function () {
  window.inTimer = 0;
  setTimeout("window.inTimer = location.pathname", 1);
  return until(function () { return window.inTimer; }).then(function (path) { return path === "/scripts.html" || path; });
});
probe("script: new Image", function () {
  var image = new Image();
  image.src = "/i/81.png";
  return came(image, 81);
});
probe("script: setAttribute", function () {
  var image = document.createElement("img");
  image.setAttribute("src", "http://other.example/i/82.png");
  byId("place").append(image);
  return came(image, 82);
});
probe("script: srcset by script", function () {
  var image = document.createElement("img");
  image.srcset = "/i/83.png 1x";
  return came(image, 83);
});
probe("script: innerHTML", function () {
  byId("place").innerHTML = '<img id="inner" src="/i/84.png" alt="">';
  return came(byId("inner"), 84);
});
probe("script: insertAdjacentHTML", function () {
  document.body.insertAdjacentHTML("beforeend", '<img id="adjacent" src="/i/85.png" alt="">');
  return came(byId("adjacent"), 85);
});
probe("script: template that is cloned", function () {
  var template = document.createElement("template");
  template.innerHTML = '<img src="/i/86.png" alt="">';
  var copy = template.content.cloneNode(true);
  document.body.append(copy);
  return came(document.body.lastElementChild, 86);
});
probe("script: DOMParser and an imported node", function () {
  var parsed = new DOMParser().parseFromString('<img src="/i/87.png" alt="">', "text/html");
  var image = document.importNode(parsed.querySelector("img"), true);
  document.body.append(image);
  return came(image, 87);
});
probe("script: custom element", function () {
  customElements.define("probe-picture", class extends HTMLElement {
    connectedCallback() { this.innerHTML = '<img src="/i/88.png" alt="">'; }
  });
  document.body.append(document.createElement("probe-picture"));
  return came(document.querySelector("probe-picture img"), 88);
});
probe("script: range made into a fragment", function () {
  var part = document.createRange().createContextualFragment('<img id="fragment" src="/i/89.png" alt="">');
  document.body.append(part);
  return came(byId("fragment"), 89);
});
probe("script: addresses are read as they were", function () {
  var link = document.createElement("a");
  link.href = "/some?x#y";
  var read = [location.href, location.origin, location.host, document.URL, document.baseURI, document.domain, link.href, link.host, new URL("x", location.href).href];
  var hoped = ["http://www.probe.example/scripts.html", "http://www.probe.example", "www.probe.example", "http://www.probe.example/scripts.html",
    "http://www.probe.example/scripts.html", "www.probe.example", "http://www.probe.example/some?x#y", "www.probe.example", "http://www.probe.example/x"];
  return read.join(" ") === hoped.join(" ") || read.join(" ");
});
probe("script: a page that wants to be the top is", function () { return (top === self && parent === self && !frameElement) || "framed"; });
probe("script: attributes are read as they were", function () {
  var image = byId("written-image");
  return (image.getAttribute("src") === "/i/80.png" && image.src === "http://www.probe.example/i/80.png") || image.getAttribute("src") + " " + image.src;
});
probe("script: history", function () {
  history.pushState({ a: 1 }, "", "/pushed?x=1");
  var pushed = location.pathname + location.search;
  history.replaceState(null, "", "/scripts.html");
  return (pushed === "/pushed?x=1" && location.pathname === "/scripts.html") || pushed + " " + location.href;
});
probe("script: hash", function () {
  var heard = new Promise(function (yes) { addEventListener("hashchange", yes, { once: true }); });
  location.hash = "part";
  return heard.then(function () { return location.hash === "#part"; });
});
probe("script: document.open and write into a frame", function () {
  var frame = document.createElement("iframe");
  document.body.append(frame);
  var inner = frame.contentDocument;
  inner.open();
  inner.write('<img id="x" src="http://www.probe.example/i/90.png" alt="">');
  inner.close();
  // What a reader sees in the end counts, not what stood there for a moment: by then the frame has long been loaded.
  return after(2000).then(function () {
    var image = frame.contentDocument.getElementById("x");
    return image ? came(image, 90) : "what was written is gone";
  });
}, 5000);
probe("script: WebAssembly", function () {
  return WebAssembly.instantiateStreaming(fetch("/answer.wasm")).then(function (made) { return made.instance.exports.answer() === 42; });
});
probe("script: this, globals and with", function () {
  function sloppy() { return this; }
  var found;
  with ({ probeInside: 1 }) { found = probeInside; }
  return sloppy() === window && found === 1 && window.told === told;
});
