"use strict";
(() => {
  const rows = () => [...document.querySelectorAll(".line, .fold > summary, a.run, .waiting")].filter((row) => row.offsetParent);
  const move = (by) => {
    const all = rows();
    const here = all.findIndex((row) => row.contains(document.activeElement));
    const next = all[Math.min(all.length - 1, Math.max(0, here + (here < 0 && by < 0 ? 0 : by)))];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  };
  const shown = (hash) => {
    const step = hash.length > 1 && document.getElementById(decodeURIComponent(hash.slice(1)));
    if (!step) return;
    for (let around = step; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
    step.querySelector("summary")?.focus();
  };
  const keys = {
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    o: () => document.activeElement?.click(),
    e: () => {
      const all = [...document.querySelectorAll(".step > details")];
      const open = all.some((one) => !one.open);
      all.forEach((one) => { one.open = open; });
    },
    g: () => { if (document.body.dataset.live) location.assign("/"); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const act = Object.hasOwn(keys, event.key) && keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  addEventListener("hashchange", () => shown(location.hash));
  shown(location.hash);

  const live = document.body.dataset.live;
  if (!live) return;
  const beat = document.querySelector(".beat");
  const told = (text, lost) => { beat.textContent = text; beat.classList.toggle("lost", lost); };
  const typing = () => [...document.querySelectorAll("form[method=post]")].some((form) => form.dataset.touched);
  document.addEventListener("input", (event) => { const form = event.target.closest("form[method=post]"); if (form) form.dataset.touched = "yes"; });
  let again;
  const refresh = async () => {
    if (typing()) { told("changed; reload when you have decided", false); return; }
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) { told("the server does not answer: reload", true); return; }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (typing() || !fresh) return;
    const open = new Set([...document.querySelectorAll("details[id][open]")].map((one) => one.id));
    const focused = document.activeElement?.closest("[id]")?.id;
    document.getElementById("main").replaceWith(fresh);
    open.forEach((id) => { const one = document.getElementById(id); if (one) one.open = true; });
    if (focused) document.getElementById(focused)?.querySelector("summary, a")?.focus({ preventScroll: true });
    told("live", false);
  };
  const stream = new EventSource(live);
  stream.onmessage = () => { clearTimeout(again); again = setTimeout(refresh, 60); };
  stream.onopen = () => told("live", false);
  stream.onerror = () => told("not live: the server is gone", true);
})();
