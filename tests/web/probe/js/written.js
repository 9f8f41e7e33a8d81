window.writtenScript = "came";
