(function () {
  'use strict';
  var knop = document.getElementById('menuknop');
  var menu = document.getElementById('menu');
  knop.addEventListener('click', function () {
    var open = menu.classList.toggle('open');
    knop.setAttribute('aria-expanded', String(open));
  });
  var melding = document.getElementById('koekjes');
  melding.querySelector('button').addEventListener('click', function () { melding.hidden = true; });
}());
