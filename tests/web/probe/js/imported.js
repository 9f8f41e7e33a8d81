var imported = "imported";
