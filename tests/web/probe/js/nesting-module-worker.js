import deep from "./module/through.js";
import("./module/late.js").then((late) => postMessage(deep + " " + late.late));
