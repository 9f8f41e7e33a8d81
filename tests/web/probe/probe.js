// What every group of probes uses: a probe has a name and a promise; what went wrong is told in words.
var told = {};
var waiting = [];

function probe(name, attempt, patience) {
  told[name] = "nothing came";
  waiting.push(
    Promise.race([
      Promise.resolve().then(attempt),
      new Promise(function (_, no) { setTimeout(no, patience || 8000, new Error("too late")); }),
    ]).then(
      function (result) { told[name] = result === true ? "ok" : "wrong: " + String(result); },
      function (error) { told[name] = "failed: " + error; }
    )
  );
}

function came(element, width) {
  return new Promise(function (yes, no) {
    function look() { yes(element.naturalWidth === width || element.naturalWidth); }
    if (element.complete && element.naturalWidth) { look(); return; }
    element.addEventListener("load", look);
    element.addEventListener("error", function () { no(new Error("no picture")); });
  });
}

function after(milliseconds) {
  return new Promise(function (done) { setTimeout(done, milliseconds); });
}

function until(condition) {
  return new Promise(function (yes) {
    (function look() {
      var got = condition();
      if (got) yes(got); else setTimeout(look, 30);
    })();
  });
}

function byId(id) { return document.getElementById(id); }

// A picture of that width, as a picture in the page tells it.
function backgroundCame(element) {
  return until(function () {
    var found = /url\("?([^")]+)"?\)/.exec(getComputedStyle(element).backgroundImage);
    return found && found[1];
  }).then(function (url) {
    var image = new Image();
    image.src = url;
    return came(image, Number(element.dataset.width));
  });
}

window.addEventListener("load", function () {
  (function settle(count) {
    Promise.all(waiting).then(function () {
      if (waiting.length > count) settle(waiting.length); else document.documentElement.dataset.done = "yes";
    });
  })(waiting.length);
});
