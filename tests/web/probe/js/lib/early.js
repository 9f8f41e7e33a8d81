export const early = "early " + location.pathname;
