// Diashow op de voorpagina: wisselt elke vijf seconden van foto.
var fotos = ['/images/brug.jpg', '/images/weefgetouw.jpg', '/images/lantaarn.jpg'];
var teller = 0;

function wissel() {
  var vakken = document.getElementsByTagName('div');
  for (var i = 0; i < vakken.length; i++) {
    if (vakken[i].className.indexOf('diashow') >= 0) {
      teller = (teller + 1) % fotos.length;
      vakken[i].getElementsByTagName('img')[0].src = fotos[teller];
    }
  }
}

window.onload = function () { window.setInterval(wissel, 5000); };
