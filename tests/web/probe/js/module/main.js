import { leaf } from "./leaf.js";
export { leaf } from "./leaf.js";
window.mainModule = leaf;
