[["img-src", 2], ["img-srcset", 3], ["img-sizes", 10], ["picture", 5], ["absolute", 7], ["other-host", 8],
 ["no-scheme", 9], ["data", 1], ["svg-image", 40], ["entities", 12], ["spaces", 13], ["umlaut", 14]].forEach(function (pair) {
  probe("attribute: " + pair[0], function () { return came(byId(pair[0]), pair[1]); });
});
probe("attribute: lazy", function () {
  byId("lazy").scrollIntoView();
  return came(byId("lazy"), 6);
});
probe("attribute: crossorigin picture on a canvas that stays clean", function () {
  return came(byId("crossorigin"), 11).then(function () {
    var canvas = document.createElement("canvas");
    canvas.getContext("2d").drawImage(byId("crossorigin"), 0, 0);
    return canvas.toDataURL().indexOf("data:image/png") === 0;
  });
});
probe("attribute: input image", function () { return until(function () { return byId("input-image").offsetWidth === 15; }); });
probe("attribute: video poster", function () {
  var image = new Image();
  image.src = byId("poster").poster;
  return came(image, 16);
});
["video", "audio", "with-track"].forEach(function (id) {
  probe("attribute: media " + id, function () { return until(function () { return Math.round(byId(id).duration) === 2; }); });
});
probe("attribute: track", function () {
  var track = byId("with-track").querySelector("track");
  track.track.mode = "showing";
  return until(function () { return track.track.cues && track.track.cues.length === 1; });
});
["cell", "inline-style"].forEach(function (id) {
  probe("attribute: background " + id, function () { return backgroundCame(byId(id)); });
});
probe("attribute: body background", function () { return backgroundCame(document.body); });
["svg-href", "svg-xlink"].forEach(function (id, at) {
  probe("attribute: " + id, function () { return until(function () { return byId(id).getBBox().width === 19 + at; }); });
});
probe("attribute: svg use of another file", function () { return until(function () { return byId("use").getBBox().width === 7; }); });
probe("attribute: stylesheet", function () { return until(function () { return getComputedStyle(byId("link")).color === "rgb(1, 2, 3)"; }); });
probe("attribute: script with integrity, deferred, async", function () {
  return until(function () { return order.join() === "plain,deferred interactive" && window.asyncCame; }).then(Boolean);
});
probe("attribute: iframe", function () {
  return until(function () { return byId("framed").contentWindow.said === "framed"; });
});
probe("attribute: srcdoc with a picture", function () {
  return until(function () { return byId("srcdoc").contentDocument.getElementById("x"); }).then(function (image) { return came(image, 23); });
});
probe("attribute: srcdoc with a script", function () {
  return until(function () { return window.fromSrcdoc; }).then(function (text) { return / 2$/.test(text); });
});
function shown(element, width) {
  return until(function () {
    var found = typeof element === "function" ? element() : element;
    return found && found.getBoundingClientRect().width === width;
  });
}
probe("attribute: object with a picture", function () { return shown(byId("object"), 40); });
probe("attribute: object with a page", function () {
  return until(function () { return byId("object-page").contentWindow && byId("object-page").contentWindow.said === "framed"; });
});
probe("attribute: embed", function () {
  return shown(function () { return byId("embedding").contentDocument.getElementById("embed"); }, 43);
});
probe("attribute: script behind an embed", function () { return until(function () { return byId("embedding").contentWindow.behind; }).then(Boolean); });
probe("attribute: links are read as they were", function () {
  return byId("link").href === "http://www.probe.example/framed.html?link#part" || byId("link").href;
});
probe("attribute: area", function () { return byId("area").href.indexOf("http://www.probe.example/") === 0 || byId("area").href; });
probe("attribute: form that is sent", function () {
  byId("form").submit();
  return until(function () { return byId("form-frame").contentWindow.asked === "?q=clock"; });
});
probe("attribute: meta refresh", function () {
  return until(function () { return byId("refreshing").contentWindow.asked === "?refreshed"; });
});
probe("attribute: noscript is not read", function () { return !document.querySelector("noscript img"); });
probe("attribute: manifest and icon links", function () {
  return document.querySelector("link[rel=manifest]").href === "http://www.probe.example/site.webmanifest" || document.querySelector("link[rel=manifest]").href;
});
