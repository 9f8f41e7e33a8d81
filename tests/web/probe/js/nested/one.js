importScripts("nested/two.js", "/js/nested/three.js");
var one = "one";
