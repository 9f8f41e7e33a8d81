function inside(id, condition) {
  return until(function () {
    try { return condition(byId(id).contentDocument); } catch (error) { return false; }
  }).then(Boolean);
}
function leads(id, link, address) {
  return inside(id, function (doc) { return doc.getElementById(link) && doc.readyState === "complete"; }).then(function () {
    var href = byId(id).contentDocument.getElementById(link).href;
    return href === "http://www.probe.example" + address || href;
  });
}
function clicked(id, link, words) {
  return inside(id, function (doc) { return doc.getElementById(link) && doc.readyState === "complete"; }).then(function () {
    byId(id).contentDocument.getElementById(link).click();
    return inside(id, function (doc) { return doc.body.textContent.indexOf(words) >= 0; });
  });
}
function picture(id, width) {
  return inside(id, function (doc) { return doc.getElementById("picture"); }).then(function () { return came(byId(id).contentDocument.getElementById("picture"), width); });
}
probe("encoding: only a mark, UTF-8", function () { return inside("marked", function (doc) { return doc.body.textContent.indexOf("Grüße €") >= 0; }); });
probe("encoding: only a mark, UTF-16 big-endian", function () { return inside("wide", function (doc) { return doc.body.textContent.indexOf("Grüße €") >= 0; }); });
probe("encoding: UTF-16 without a mark", function () { return inside("untold", function (doc) { return doc.body.textContent.indexOf("Grüße €") >= 0; }); });
probe("encoding: ISO-2022-JP", function () { return inside("jis", function (doc) { return doc.body.textContent.indexOf("時計と<博物館>") >= 0; }); });
probe("encoding: letters in the page stay", function () {
  return inside("latin", function (doc) { return doc.body.textContent.indexOf("Größe €") >= 0 && doc.characterSet === "windows-1252"; });
});
probe("encoding: references in attributes", function () {
  return inside("latin", function (doc) { return doc.getElementById("value"); }).then(function () {
    var value = byId("latin").contentDocument.getElementById("value").value;
    return value === "weiter – Ä €" || value;
  });
});
probe("encoding: picture with letters in its address", function () { return picture("latin", 71); });
probe("encoding: picture in Shift_JIS", function () { return picture("japanese", 72); });
probe("encoding: link", function () { return leads("latin", "link", "/Gr%C3%B6%C3%9Fe.html"); });
probe("encoding: query in the encoding of the page", function () { return leads("latin", "query", "/suche.html?wort=Gr%F6%DFe&x=1"); });
probe("encoding: link with references", function () { return leads("latin", "entity", "/Gr%C3%B6%C3%9Fe.html?entity"); });
probe("encoding: links lead to what was archived", function () {
  return Promise.all([clicked("latin", "link", "Seite über Größe"), clicked("japanese", "link", "page of the source")]).then(function (all) { return all.join() === "true,true" || all.join(); });
});
