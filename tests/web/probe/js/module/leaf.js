export const leaf = "leaf";
