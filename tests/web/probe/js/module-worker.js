import { leaf } from "./module/leaf.js";
postMessage("module " + leaf);
