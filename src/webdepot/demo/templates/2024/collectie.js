// De collectie: haalt de stukken op als JSON en toont ze met filters.
export async function toon(plaats, bron) {
  const { stukken } = await (await fetch(bron)).json();
  const soorten = ['alles', ...new Set(stukken.map((stuk) => stuk.soort))];
  const filters = maak('div', { className: 'filters' });
  const rooster = maak('div', { className: 'rooster' });
  for (const soort of soorten) {
    const knop = maak('button', { type: 'button', textContent: soort });
    knop.addEventListener('click', () => kies(soort));
    filters.append(knop);
  }
  plaats.replaceChildren(filters, rooster);
  kies('alles');

  function kies(soort) {
    for (const knop of filters.children) knop.setAttribute('aria-pressed', String(knop.textContent === soort));
    rooster.replaceChildren(...stukken.filter((stuk) => soort === 'alles' || stuk.soort === soort).map(kaart));
  }
}

function kaart(stuk) {
  const beeld = maak('img', { src: stuk.beeld, alt: '', width: 1080, height: 720, loading: 'lazy' });
  const titel = maak('h3');
  titel.append(maak('a', { href: stuk.pad, textContent: stuk.titel }));
  const vak = maak('article', { className: 'stuk' });
  vak.append(beeld, titel, maak('p', { textContent: `${stuk.jaar} · ${stuk.soort} · ${stuk.nummer}` }));
  return vak;
}

function maak(naam, eigenschappen = {}) {
  return Object.assign(document.createElement(naam), eigenschappen);
}
