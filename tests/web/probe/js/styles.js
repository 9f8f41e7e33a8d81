function coloured(id, colour) { return until(function () { return getComputedStyle(byId(id)).color === colour; }); }
["in-style", "variable", "several", "in-media", "in-supports", "escaped", "from-file", "from-other", "from-import"].forEach(function (id) {
  probe("style: " + id, function () { return backgroundCame(byId(id)); });
});
probe("style: image-set", function () {
  var found = /url\("?([^")]+)"?\)/.exec(getComputedStyle(byId("image-set")).backgroundImage);
  var image = new Image();
  image.src = found[1];
  return came(image, 52);
});
probe("style: import of a string", function () { return coloured("from-import-string", "rgb(7, 8, 9)"); });
probe("style: import in an imported file", function () { return coloured("deep-import", "rgb(4, 5, 6)"); });
probe("style: generated content", function () { return until(function () { return byId("counted").offsetWidth && byId("counted").offsetHeight > 40; }); });
probe("style: font", function () {
  byId("font").style.fontFamily = "Probe, monospace";
  return document.fonts.load("20px Probe", "i").then(function (faces) { return faces.length === 1 && faces[0].status === "loaded"; });
});
probe("style: set by script", function () {
  byId("by-script").style.backgroundImage = "url(/i/64.png)";
  return backgroundCame(byId("by-script"));
});
probe("style: rule inserted by script", function () {
  document.querySelector("style").sheet.insertRule("#by-rule { background-image: url(/i/65.png) }", document.querySelector("style").sheet.cssRules.length);
  return backgroundCame(byId("by-rule"));
});
probe("style: sheet made by script", function () {
  var sheet = new CSSStyleSheet();
  sheet.replaceSync("#by-sheet { background-image: url(/i/66.png) }");
  document.adoptedStyleSheets = [sheet];
  return backgroundCame(byId("by-sheet"));
});
probe("style: element made by script", function () {
  var made = document.createElement("style");
  made.textContent = "#by-text { background-image: url(http://www.probe.example/i/67.png) }";
  document.head.append(made);
  return backgroundCame(byId("by-text"));
});
probe("style: inside a shadow", function () {
  var root = byId("host").attachShadow({ mode: "open" });
  root.innerHTML = '<style>p { background-image: url(/i/69.png) }</style><p data-width="69">a</p><img src="/i/70.png" alt="">';
  return Promise.all([backgroundCame(root.querySelector("p")), came(root.querySelector("img"), 70)]).then(function (both) {
    return both[0] === true && both[1] === true;
  });
});
probe("style: rules of a sheet are readable", function () { return document.styleSheets[0].cssRules.length >= 1; });
