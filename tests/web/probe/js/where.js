postMessage(self.location.href);
