// A chosen filter is applied at once; suggestions while typing; narrowing the histogram by dragging or with the keyboard. Without it
// buttons, links and fields do the same.
(() => {
  // Only after a click or a tap: with the keyboard, each step through a list is a change, and Enter sends the form.
  let pointed = false;
  for (const select of document.querySelectorAll(".results .filters select")) {
    select.addEventListener("pointerdown", () => { pointed = true; });
    select.addEventListener("keydown", () => { pointed = false; });
    select.addEventListener("change", () => { if (pointed && select.form.elements.q.value.trim()) select.form.requestSubmit(); });
  }

  const box = document.querySelector("[data-suggest]");
  if (box) {
    const list = document.getElementById(box.getAttribute("list"));
    let asked = "", waiting = 0;
    box.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const typed = box.value;
        if (typed === asked || typed.trim().length < 2) return;
        asked = typed;
        try {
          const answer = await fetch(box.dataset.suggest + "?q=" + encodeURIComponent(typed));
          if (!answer.ok || box.value !== typed) return;
          const words = (await answer.json())[1];
          list.replaceChildren(...words.map((word) => { const option = document.createElement("option"); option.value = word; return option; }));
        } catch { /* suggestions are a help, no need */ }
      }, 150);
    });
  }

  const chart = document.querySelector("[data-narrow]");
  if (!chart) return;
  const bars = [...chart.querySelectorAll("li[data-moment]")];
  chart.querySelector(".needs-script")?.classList.add("ready");
  let first = -1, last = -1, moved = false;
  const at = (target) => bars.indexOf(target?.closest?.("li[data-moment]"));
  const show = () => bars.forEach((bar, place) =>
    bar.classList.toggle("chosen", first >= 0 && place >= Math.min(first, last) && place <= Math.max(first, last)));
  const go = () => {
    const from = bars[Math.min(first, last)].dataset.moment, to = bars[Math.max(first, last)].dataset.moment;
    location.href = chart.dataset.narrow.replace("FROM", from).replace("TO", to);
  };
  chart.addEventListener("dragstart", (event) => event.preventDefault());
  chart.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || at(event.target) < 0) return;
    first = last = at(event.target);
    moved = false;
  });
  document.addEventListener("pointermove", (event) => {
    if (first < 0 || !event.buttons) return;
    const place = at(document.elementFromPoint(event.clientX, event.clientY));
    if (place < 0 || place === last) return;
    last = place;
    moved = true;
    show();
  });
  document.addEventListener("pointerup", () => { if (moved) go(); if (!moved) { first = last = -1; show(); } });
  chart.addEventListener("click", (event) => { if (moved) event.preventDefault(); });
  chart.addEventListener("keydown", (event) => {
    const here = at(event.target);
    if (here < 0) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      event.preventDefault();
      if (event.shiftKey) {
        if (first < 0) first = last = here;
        last = Math.min(Math.max(last + step, 0), bars.length - 1);
        show();
      } else {
        first = last = -1;
        show();
        for (let next = here + step; bars[next]; next += step) {
          const link = bars[next].querySelector("a");
          if (link) { link.focus(); break; }
        }
      }
    } else if (event.key === "Enter" && first >= 0 && first !== last) { event.preventDefault(); go(); }
    else if (event.key === "Escape") { first = last = -1; show(); }
  });
})();
