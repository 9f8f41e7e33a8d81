import { leaf as inner } from "../../module/leaf.js";
export default function () { return "deep " + inner + " " + (typeof window.document); }
