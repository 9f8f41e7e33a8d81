function json(answer) { return answer.json(); }
function got(url, options) { return fetch(url, options).then(json).then(function (data) { return data.answer; }); }
probe("network: fetch", function () { return got("/data/fetch.json").then(function (answer) { return answer === "fetch"; }); });
probe("network: fetch of a whole address at another host", function () {
  return got("http://other.example/data/far.json").then(function (answer) { return answer === "far"; });
});
probe("network: Request and headers", function () {
  return fetch(new Request("/data/request.json", { headers: { "X-Asked": "yes" } })).then(function (answer) {
    return answer.json().then(function (data) { return data.answer === "request" && answer.url === "http://www.probe.example/data/request.json" || answer.url; });
  });
});
probe("network: fetch of a URL object", function () { return got(new URL("/data/object.json", location.href)).then(function (answer) { return answer === "object"; }); });
probe("network: XMLHttpRequest", function () {
  return new Promise(function (yes) {
    var request = new XMLHttpRequest();
    request.open("GET", "/data/xhr.json");
    request.responseType = "json";
    request.onload = function () { yes((request.status === 200 && request.response.answer === "xhr" && request.responseURL === "http://www.probe.example/data/xhr.json") || request.responseURL); };
    request.send();
  });
});
probe("network: XMLHttpRequest that waits", function () {
  var request = new XMLHttpRequest();
  request.open("GET", "/data/sync.json", false);
  request.send();
  return JSON.parse(request.responseText).answer === "sync";
});
probe("network: redirect that is followed", function () {
  return fetch("/moved").then(function (answer) { return answer.json().then(function (data) { return data.answer === "arrived"; }); });
});
probe("network: status of what was missing then", function () { return fetch("/data/gone.json").then(function (answer) { return answer.status === 404 || answer.status; }); });
probe("network: status of what failed then", function () { return fetch("/data/broken.json").then(function (answer) { return answer.status === 503 || answer.status; }); });
probe("network: what is not kept is missing", function () { return fetch("/data/never.json").then(function (answer) { return answer.status === 404 || answer.status; }); });
probe("network: headers of the answer", function () {
  return fetch("/data/fetch.json").then(function (answer) { return answer.headers.get("content-type") === "application/json" || answer.headers.get("content-type"); });
});
probe("network: cache-buster", function () {
  return got("/data/busted.json?_=" + Date.now()).then(function (answer) { return answer === "busted"; });
});
probe("network: two questions by POST to one address", function () {
  function ask(q) {
    return got("/api", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ q: q }) });
  }
  return Promise.all([ask("one"), ask("two")]).then(function (both) { return both.join() === "first,second" || both.join(); });
});
probe("network: XMLHttpRequest by POST", function () {
  return new Promise(function (yes) {
    var request = new XMLHttpRequest();
    request.open("POST", "/api");
    request.setRequestHeader("Content-Type", "application/x-www-form-urlencoded");
    request.onload = function () { yes(JSON.parse(request.responseText).answer === "by form"); };
    request.send("q=three");
  });
});
probe("network: form by POST", function () {
  byId("posting").submit();
  return until(function () { return byId("posted").contentWindow.asked === "posted"; });
});
probe("network: part of a file", function () {
  return fetch("/long.wav", { headers: { Range: "bytes=4-7" } }).then(function (answer) {
    return answer.arrayBuffer().then(function (data) { return (answer.status === 206 && data.byteLength === 4) || answer.status + " " + data.byteLength; });
  });
});
probe("network: media that is wound forward", function () {
  var media = byId("long");
  return until(function () { return media.readyState >= 1; }).then(function () {
    return new Promise(function (yes) {
      media.addEventListener("seeked", function () { yes(Math.abs(media.currentTime - 20) < 0.1 || media.currentTime); }, { once: true });
      media.currentTime = 20;
    });
  });
});
probe("network: body as a stream", function () {
  return fetch("/long.wav?stream").then(function (answer) {
    var reader = answer.body.getReader();
    var size = 0;
    return reader.read().then(function more(part) {
      if (part.done) return size > 300000 || size;
      size += part.value.length;
      return reader.read().then(more);
    });
  });
});
probe("network: fetch that is called off", function () {
  var control = new AbortController();
  var asked = fetch("/data/fetch.json?off", { signal: control.signal });
  control.abort();
  return asked.then(function () { return "came"; }, function (error) { return error.name === "AbortError"; });
});
probe("network: server-sent events", function () {
  return new Promise(function (yes, no) {
    var source = new EventSource("/events");
    source.onmessage = function (event) { source.close(); yes(event.data === "hello"); };
    source.onerror = function () { source.close(); no(new Error("no events")); };
  });
});
probe("network: beacon is taken and goes nowhere", function () { return navigator.sendBeacon("http://live.example/beacon", "x") !== undefined; });
probe("network: compressed answer", function () { return got("/data/gzip.json").then(function (answer) { return answer === "gzip"; }); });
probe("network: content that is kept once and shown twice", function () {
  return Promise.all([fetch("/data/twin-one.txt"), fetch("/data/twin-two.txt")]).then(function (both) {
    return Promise.all(both.map(function (answer) { return answer.text(); })).then(function (texts) { return texts[0] === texts[1] && texts[0].length > 1000; });
  });
});
