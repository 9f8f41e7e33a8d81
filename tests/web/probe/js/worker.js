importScripts("/js/imported.js");
fetch("/data/worker.json").then((answer) => answer.json()).then((data) => postMessage(imported + " " + data.answer));
