export const lazy = "lazy";
export default import.meta.url;
