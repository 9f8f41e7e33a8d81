window.madeScript = "came";
