// The page works without this script, which adds keys, lines that expand in place, and filters that act at once.
(() => {
  "use strict";
  const root = document.querySelector(".oc");
  if (!root) return;
  const form = root.querySelector("[data-oc-form]");
  const box = root.querySelector("#oc-q");
  const hits = [...root.querySelectorAll("[data-oc-hit]")];

  if (form) {
    // Keeps empty and default values out of the address.
    const isDefault = (control) =>
      control.name && (control.value === "" || (control.name === "mode" && control.value === "hybrid" && control.checked));
    form.addEventListener("submit", () => {
      for (const control of form.elements) if (isDefault(control)) control.disabled = true;
      root.setAttribute("aria-busy", "true");
    });
    addEventListener("pageshow", () => {
      for (const control of form.elements) control.disabled = false;
      root.removeAttribute("aria-busy");
    });
    form.addEventListener("change", (event) => {
      if (event.target.matches("select, [type=radio], [type=checkbox]") && box.value.trim()) form.requestSubmit();
    });
  }

  // More lines in place, instead of opening the viewer.
  const STEP = 12;
  const more = async (link) => {
    const hit = link.closest("[data-oc-hit]");
    const left = Number(link.dataset.ocLeft);
    if (link.getAttribute("aria-busy")) return;
    // First the rest of the passage, then more lines around it each time.
    const around = left ? 0 : Math.min(400, Number(link.dataset.ocAround || 0) * 2 || STEP);
    const address = new URL(link.dataset.ocMore, location.href);
    address.searchParams.set("around", around);
    address.searchParams.set("part", "1");
    link.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const lines = page.querySelector(".oc-lines");
      if (!lines) throw new Error("no lines");
      hit.querySelector("[data-oc-body]").replaceChildren(lines);
      link.dataset.ocAround = around;
      link.dataset.ocLeft = "0";
      link.querySelector("span").textContent = "Show more around";
      if (lines.dataset.grow !== "yes") link.hidden = true;
    } catch {
      location.assign(link.href);
    } finally {
      link.removeAttribute("aria-busy");
    }
  };
  root.addEventListener("click", (event) => {
    const link = event.target.closest("[data-oc-more]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    more(link);
  });

  let at = -1;
  const go = (to) => {
    if (!hits.length) return;
    hits[at]?.classList.remove("oc-on");
    at = Math.max(0, Math.min(hits.length - 1, to));
    const hit = hits[at];
    hit.classList.add("oc-on");
    const link = hit.querySelector("[data-oc-open]");
    (link || hit).focus({ preventScroll: true });
    hit.scrollIntoView({ block: "nearest" });
  };
  root.addEventListener("focusin", (event) => {
    const hit = event.target.closest("[data-oc-hit]");
    if (!hit || hits.indexOf(hit) === at) return;
    hits[at]?.classList.remove("oc-on");
    at = hits.indexOf(hit);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = event.target.closest?.("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]");
    const choosing = event.target.matches?.("[type=radio]");
    if (event.key === "/" && !typing && box) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key === "Escape" && event.target === box) {
      box.blur();
    } else if (event.key === "ArrowDown" && event.target === box && hits.length) {
      event.preventDefault();
      go(0);
    } else if (!typing && !choosing && (event.key === "j" || event.key === "ArrowDown") && hits.length) {
      event.preventDefault();
      go(at + 1);
    } else if (!typing && !choosing && (event.key === "k" || event.key === "ArrowUp") && hits.length && at >= 0) {
      event.preventDefault();
      if (at === 0 && event.key === "ArrowUp" && box) box.focus();
      else go(at - 1);
    } else if (event.key === "m" && !typing && at >= 0) {
      const link = hits[at].querySelector("[data-oc-more]");
      if (link && !link.hidden) more(link);
    }
  });
})();
