var three = "three";
