"""A person without a mouse in a real browser: Tab, arrows, Enter, Space and typing. The focus must be visible
wherever they act.
"""

from playwright.sync_api import Page, expect

MOST_STOPS = 250
# The name of the focused element, and whether the focus is visible.
FOCUSED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return {words: "", seen: false, tag: ""};
  const label = at.labels && at.labels.length ? at.labels[0].innerText : "";
  const words = at.getAttribute("aria-label") || label || at.innerText || at.value || "";
  const style = getComputedStyle(at), box = at.getBoundingClientRect();
  const outline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const ring = outline || style.boxShadow !== "none";
  return {words: words.trim().replace(/\\s+/g, " "),
          seen: at.matches(":focus-visible") && ring && box.width > 0 && box.height > 0,
          tag: at.tagName.toLowerCase(), value: at.value || "", type: at.type || "",
          href: at.getAttribute("href") || ""};
}"""


class Keyboard:
    """Acts on one page. `words` is the beginning of the name of a control, which must be visible or
    accessible on the page.
    """

    def __init__(self, page: Page) -> None:
        self.page = page

    def focused(self) -> dict[str, object]:
        return self.page.evaluate(FOCUSED)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def skip(self) -> None:
        """Skip the navigation, by the first link of the page; a page opened at one of its parts begins
        there.
        """
        if "#" in self.page.url:
            return
        self.press("Tab")
        assert self.focused()["href"] == "#content", "the first link skips the navigation"
        self.press("Enter")

    def to(self, words: str, tag: str = "") -> dict[str, object]:
        """Press Tab until a control of that name has the focus, which must be visible."""
        passed = []
        for _ in range(MOST_STOPS):
            self.press("Tab")
            found = self.focused()
            if str(found["words"]).startswith(words) and found["tag"].startswith(tag):
                assert found["seen"], f"the focus on {words!r} is not visible on {self.page.url}"
                return found
            passed.append(found["words"])
        raise AssertionError(f"{words!r} cannot be reached on {self.page.url}: {list(dict.fromkeys(passed))}")

    def go(self, words: str, tag: str = "") -> None:
        """Follow a link, or press a button that opens another page."""
        self.to(words, tag)
        with self.page.expect_navigation():
            self.press("Enter")

    def open(self, words: str) -> None:
        """Open a collapsed section."""
        self.to(words, "summary")
        self.press("Enter")

    def type(self, words: str, text: str) -> None:
        self.to(words)
        self.page.keyboard.type(text)

    def replace_text(self, words: str, text: str) -> None:
        self.to(words)
        self.press("Control+a")
        self.page.keyboard.type(text)

    def choose(self, words: str, option: str) -> None:
        """Choose an option of a list by its first letters."""
        self.to(words, "select")
        self.page.keyboard.type(option)
        chosen = self.page.evaluate("document.activeElement.selectedOptions[0].innerText")
        assert chosen.strip().startswith(option), chosen

    def mark(self, value: str) -> None:
        """Choose a radio button: Tab to the group, Space for its first, arrows for the others."""
        for _ in range(MOST_STOPS):
            self.press("Tab")
            if self.focused()["type"] == "radio":
                break
        self.press("Space")
        for _ in range(10):
            found = self.focused()
            if found["value"] == value:
                assert found["seen"] and self.page.evaluate("document.activeElement.checked")
                return
            self.press("ArrowDown")
        raise AssertionError(f"{value!r} is not among the choices on {self.page.url}")

    def sign_in(self, portal: str, name: str, password: str) -> None:
        self.page.goto(f"{portal}/sign-in")
        self.skip()
        self.type("Name", name)
        self.type("Password", password)
        with self.page.expect_navigation():
            self.press("Enter")
        expect(self.page.get_by_text(name).first).to_be_attached()
