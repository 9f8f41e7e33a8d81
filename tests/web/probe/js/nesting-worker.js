importScripts("nested/one.js");
postMessage([one, two, three].join(" "));
