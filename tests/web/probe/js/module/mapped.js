export const mapped = "mapped";
