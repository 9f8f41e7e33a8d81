import deep from "./nested/deep.js";
export function dyn() { return deep() + " " + document.title.length.toString().slice(0, 0) + import.meta.url.split("/").pop(); }
