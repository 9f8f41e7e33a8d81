import { leaf } from "./leaf.js";
const through = "through " + leaf;
export default through;
