// Live parts, the reader's time zone, keys, and copying. Pages work without it: then one reloads them oneself.
"use strict";
(() => {
  const QUIET_MS = 500; // news of so long are one asking
  const AGAIN_MS = 3000; // after which a closed stream is opened again
  const STALE_MS = 15000; // ages grow though nothing happens
  const KINDS = ["news", "state", "stage_started", "stage_finished", "note", "end"];

  // --- times ---------------------------------------------------------------------------------------------------------
  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
      const moment = new Date(time.dateTime);
      if (isNaN(moment)) continue;
      time.textContent = local.format(moment);
      time.dataset.local = "";
    }
  }

  // --- live parts ----------------------------------------------------------------------------------------------------
  // <section id="live" data-live="/live" hx-get="…" hx-select="#live" hx-trigger="news" hx-swap="outerHTML">
  let stream = null;
  let due = null;
  let askedAt = Date.now();
  const part = () => document.querySelector("[data-live]");
  // whoever selects rows or types must not lose that
  const inUse = () => part().querySelector("input:checked:not([type=hidden]), textarea:focus, input:focus, select:focus") !== null;
  const summaries = (selector) => [...document.querySelectorAll(`#live ${selector} > summary`)];
  let unfolded = []; // what the reader has opened stays so
  const keepUnfolded = () => { unfolded = summaries("details[open]").map((summary) => summary.textContent); };

  function ask() {
    due = null;
    if (!part() || document.hidden || inUse()) return;
    askedAt = Date.now();
    htmx.trigger(part(), "news");
  }
  function news() {
    due ??= setTimeout(ask, QUIET_MS);
  }
  function show(html) { // the part itself came
    if (!part() || document.hidden || inUse()) return;
    askedAt = Date.now();
    keepUnfolded();
    htmx.swap(part(), html, { swapStyle: "outerHTML" });
  }
  function open() {
    const live = part();
    if (!live || !live.dataset.live || stream || document.hidden) return;
    stream = new EventSource(live.dataset.live);
    for (const kind of KINDS) stream.addEventListener(kind, news);
    stream.addEventListener("part", (event) => show(JSON.parse(event.data)));
    stream.addEventListener("end", close);
    stream.onopen = () => part()?.removeAttribute("aria-busy");
    stream.onerror = () => {
      part()?.setAttribute("aria-busy", "true"); // shown as: not connected
      if (stream && stream.readyState === EventSource.CLOSED) {
        close();
        setTimeout(() => { news(); open(); }, AGAIN_MS);
      }
    };
  }
  function close() {
    stream?.close();
    stream = null;
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (part()) { news(); open(); }
  });
  setInterval(() => { if (part()?.dataset.live && Date.now() - askedAt > STALE_MS) news(); }, STALE_MS / 3);
  document.addEventListener("htmx:responseError", () => location.reload()); // the session is over: the form says so
  document.addEventListener("htmx:sendError", (event) => {
    const target = event.detail.target;
    if (!target || target.id === "live" || target.querySelector("[data-lost]")) return;
    const said = document.createElement("p");
    said.className = "callout warn";
    said.setAttribute("role", "alert");
    said.dataset.lost = "";
    said.textContent = "The request did not reach the service. Send it again; a form is applied only once.";
    target.prepend(said);
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    const isPage = xhr.getResponseHeader("content-type")?.startsWith("text/html");
    // what is open stays as it is while the service cannot answer
    if (!isPage || (xhr.status >= 500 && target.id === "live")) event.detail.shouldSwap = false;
    else if (target.id === "live") keepUnfolded();
  });
  // --- tables on a phone: the style sheet shows a row as a block, whose lines need the names of the columns -----------
  function nameCells() {
    for (const table of document.querySelectorAll("main table:not(.heat):not(.stacked)")) {
      const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
      if (!names.length) continue;
      for (const row of table.tBodies[0]?.rows ?? []) {
        [...row.cells].forEach((cell, place) => {
          if (!cell.textContent.trim() && !cell.querySelector("input, button, select")) cell.replaceChildren();
          if (names[place] && cell.tagName === "TD") cell.dataset.label = names[place];
        });
      }
      table.classList.add("stacked");
    }
  }
  function dress() {
    localTimes(document);
    nameCells();
  }
  document.addEventListener("htmx:afterSwap", dress);
  document.addEventListener("htmx:afterSettle", () => {
    dress();
    for (const summary of summaries("details")) summary.parentElement.open ||= unfolded.includes(summary.textContent);
  });

  // --- forms ---------------------------------------------------------------------------------------------------------
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const question = event.submitter?.dataset.confirm || form.dataset.confirm;
    if (form.dataset.sent || (question && !confirm(question))) { event.preventDefault(); return; }
    if (event.submitter?.dataset.download !== undefined) return; // the page stays, and its form with it
    if (form.method === "post" && !event.defaultPrevented) form.dataset.sent = "1"; // twice is once
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (!box.matches?.("[data-all]")) return;
    for (const other of document.querySelectorAll(`input[name="${box.dataset.all}"]`)) other.checked = box.checked;
  });
  async function copy(element) {
    if (navigator.clipboard) return navigator.clipboard.writeText(element.textContent);
    getSelection().selectAllChildren(element); // over plain HTTP browsers have no clipboard for scripts
    document.execCommand("copy");
    getSelection().removeAllRanges();
  }
  document.addEventListener("click", (event) => {
    const copied = event.target.closest?.("[data-copy]");
    if (copied) copy(document.getElementById(copied.dataset.copy)).then(() => { copied.textContent = "Copied"; });
  });

  // --- the map: what is looked for stands out ---------------------------------------------------------------------------
  const find = document.querySelector("[data-find]");
  find?.form.addEventListener("submit", (event) => event.preventDefault());
  find?.addEventListener("input", () => {
    const sought = find.value.trim().toLowerCase();
    const matches = (element) => element.dataset.task.toLowerCase().includes(sought);
    for (const mark of document.querySelectorAll(".map [data-task]")) mark.classList.toggle("faint", !matches(mark));
    for (const name of document.querySelectorAll(".map text")) name.classList.toggle("faint", !name.textContent.toLowerCase().includes(sought));
    const rows = [...document.querySelectorAll("tr[data-task]")];
    for (const row of rows) row.hidden = !matches(row);
    for (const folded of document.querySelectorAll("main details:has(tr[data-task])")) folded.open = sought !== "" && folded.querySelector("tr[data-task]:not([hidden])") !== null;
    const count = rows.filter((row) => !row.hidden).length;
    document.getElementById("matching").textContent = sought ? `${count} of ${rows.length} tasks` : "";
  });

  // --- keys ----------------------------------------------------------------------------------------------------------
  let went = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog[open]")) return;
    if (event.key === "?") document.getElementById("help")?.showModal();
    else if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); }
    } else if (event.key === "g") went = Date.now();
    else if (Date.now() - went < 1500) {
      const link = document.querySelector(`nav [data-key="${CSS.escape(event.key)}"]`);
      went = 0;
      if (link) location.assign(link.href);
    }
  });

  for (const element of document.querySelectorAll("[data-needs-script]")) element.hidden = false;
  dress();
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  open();
})();
