window.asyncCame = document.currentScript.src;
