window.neverScript = "came";
