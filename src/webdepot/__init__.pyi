from webdepot.archive import Archive as Archive
