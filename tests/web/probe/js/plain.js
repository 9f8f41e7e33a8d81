order.push("plain");
