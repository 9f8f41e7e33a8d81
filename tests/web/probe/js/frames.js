function inside(id, condition) {
  return until(function () {
    try { return condition(byId(id).contentWindow, byId(id).contentDocument); } catch (error) { return false; }
  }).then(function (got) { return got === true ? true : Boolean(got); });
}
function answerOf(id, target) {
  return inside(id, function (win) { return win; }).then(function () {
    return new Promise(function (yes) {
      var asking = setInterval(function () { byId(id).contentWindow.postMessage("who", target); }, 100);
      addEventListener("message", function hear(event) {
        if (event.source !== byId(id).contentWindow || !event.data || event.data.answer !== "framed") return;
        removeEventListener("message", hear);
        clearInterval(asking);
        yes(event);
      });
    });
  });
}
probe("frame: postMessage to any", function () { return answerOf("near", "*").then(function (event) { return event.data.from === "http://www.probe.example" || event.data.from; }); });
probe("frame: postMessage to its own origin", function () { return answerOf("near", location.origin).then(function (event) { return event.origin === "http://www.probe.example" || event.origin; }); });
probe("frame: postMessage to another host", function () {
  return answerOf("far", "http://other.example").then(function (event) { return event.origin === "http://other.example" && event.data.from === "http://www.probe.example" || event.origin + " " + event.data.from; });
});
probe("frame: a channel of its own", function () {
  return inside("near", function (win) { return win.said; }).then(function () {
    return new Promise(function (yes) {
      var channel = new MessageChannel();
      channel.port1.onmessage = function (event) { yes(event.data === "through the channel"); };
      byId("near").contentWindow.postMessage("port", "*", [channel.port2]);
    });
  });
});
probe("frame: bare postMessage to itself", function () {
  return new Promise(function (yes) {
    addEventListener("message", function hear(event) { if (event.data === "to myself") yes(event.source === window); });
    postMessage("to myself", "*");
  });
});
probe("frame: base", function () { return inside("based", function (win, doc) { return doc.getElementById("x").naturalWidth === 91 && doc.baseURI === "http://www.probe.example/deep/"; }); });
probe("frame: frameset of 1998", function () {
  return inside("frameset", function (win) { return win.frames.length === 2 && win.frames[0].said === "framed" && win.frames.content.said === "framed"; });
});
probe("frame: windows-1252 told by the server", function () { return inside("latin", function (win, doc) { return doc.body.textContent.indexOf("Käse – 5 €") >= 0; }); });
probe("frame: encoding told by the page alone", function () { return inside("declared", function (win, doc) { return doc.body.textContent.indexOf("Привет") >= 0; }); });
probe("frame: UTF-16", function () { return inside("wide", function (win, doc) { return doc.body.textContent.indexOf("breite Zeichen äöü") >= 0; }); });
probe("frame: location set by script", function () { return inside("jumping", function (win) { return win.asked === "?jumped"; }); });
probe("frame: what is not kept says so", function () {
  byId("missing").src = "/never" + "-kept.html";
  return inside("missing", function (win, doc) { return /archive/i.test(doc.body.textContent); });
});
probe("frame: sandbox of the page", function () { return answerOf("sandboxed", "*").then(function () { return true; }); });
probe("frame: SVG document", function () { return inside("xml", function (win, doc) { return doc.documentElement.localName === "svg"; }); });
probe("frame: plain text", function () { return inside("text", function (win, doc) { return /^only words/.test(doc.body.textContent); }); });
probe("frame: address that led to itself at first", function () { return inside("loop", function (win, doc) { return /the page itself/.test(doc.body.textContent); }); });
probe("frame: redirect", function () { return inside("redirected", function (win) { return win.asked === "?redirected"; }); });
probe("frame: redirect to another host", function () { return answerOf("redirected-far", "*").then(function (event) { return event.data.at === "http://other.example/framed.html?far" || event.data.at; }); });
probe("frame: page without document type", function () { return inside("quirks", function (win, doc) { return doc.compatMode === "BackCompat"; }); });
probe("frame: standards mode is kept", function () { return document.compatMode === "CSS1Compat"; });
probe("frame: blank frame that is filled", function () {
  return inside("blank", function (win, doc) { return doc.body; }).then(function () {
    var image = byId("blank").contentDocument.createElement("img");
    image.src = "http://www.probe.example/i/92.png";
    byId("blank").contentDocument.body.append(image);
    return came(image, 92);
  });
});
probe("frame: named frame and a link into it", function () {
  return inside("near", function (win) { return win.said; }).then(function () {
    return new Promise(function (yes) { setTimeout(yes, 1500); });
  }).then(function () {
    byId("targeted").click();
    return inside("near", function (win) { return win.asked === "?targeted"; });
  });
});
