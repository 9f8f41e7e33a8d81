// Begin van alle pagina's: laadt alleen wat een pagina nodig heeft.
const collectie = document.querySelector('#collectie');
if (collectie) {
  const { toon } = await import('/script/collectie.js');
  await toon(collectie, collectie.dataset.bron);
}
