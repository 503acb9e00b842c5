"use strict";
// Everything here only makes pages more pleasant: without it they work, and are as they were when they were asked for.

const root = document.documentElement;
const body = document.body;
const still = "still" in body.dataset; // pages that are files: nothing can be asked for

// --- light and dark --------------------------------------------------------------------------------------------------

function theme(wanted) {
  if (wanted) root.dataset.theme = wanted;
}

function toggleTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme(dark ? "light" : "dark");
  localStorage.setItem("theme", root.dataset.theme);
}

theme(localStorage.getItem("theme"));
document.getElementById("theme").addEventListener("click", toggleTheme);

// --- parts of a page in place of older ones --------------------------------------------------------------------------

async function pageAt(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (!answer.ok) return null;
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function takeOver(page) {
  for (const fresh of page.querySelectorAll("[data-live]")) {
    const old = document.getElementById(fresh.id);
    if (!old || old.innerHTML === fresh.innerHTML) continue;
    const left = old.scrollLeft;
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(document.adoptNode(fresh));
    fresh.scrollLeft = left;
    if (focused) [...fresh.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus();
  }
}

let asking = false;
let again = false;

async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  const address = location.href;
  try {
    const page = await pageAt(address);
    if (page && address === location.href) takeOver(page);
  } catch {
    // the server is away; the stream says so
  }
  asking = false;
  if (again) {
    again = false;
    refresh();
  }
}

// --- news ------------------------------------------------------------------------------------------------------------

function follow() {
  const run = (body.dataset.run || "").trim();
  if (still || !run || !window.EventSource) return;
  const said = document.getElementById("link");
  const stream = new EventSource(body.dataset.events);
  stream.addEventListener("open", () => {
    said.textContent = "live";
  });
  stream.addEventListener("error", () => {
    said.textContent = "connection lost";
  });
  stream.addEventListener("changed", (event) => {
    if (run === "*" || JSON.parse(event.data).includes(run)) refresh();
  });
  addEventListener("pagehide", () => stream.close());
}

follow();

// --- going from turn to turn without a new page ----------------------------------------------------------------------

async function goTo(address, push = true) {
  const page = await pageAt(address);
  if (!page) return;
  if (push) history.pushState(null, "", address);
  takeOver(page);
  document.querySelector("#strip [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

document.addEventListener("click", (event) => {
  if (still || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = event.target.closest("#strip a[data-turn], #stage a[data-prev], #stage a[data-next]");
  if (!link || !link.href) return;
  event.preventDefault();
  goTo(link.href);
});

addEventListener("popstate", () => still || goTo(location.href, false));

function press(selector) {
  const link = document.querySelector(selector);
  if (link && link.getAttribute("href")) link.click();
}

function attempt(by) {
  const links = [...document.querySelectorAll("[data-attempt]")];
  const here = links.findIndex((link) => link.hasAttribute("aria-current"));
  links[here + by]?.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const keys = {
    ArrowLeft: () => press("[data-prev]"),
    ArrowRight: () => press("[data-next]"),
    "[": () => attempt(-1),
    "]": () => attempt(1),
    t: toggleTheme,
    "/": () => document.getElementById("search")?.focus(),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

// --- what is only fetched when somebody looks ------------------------------------------------------------------------

document.addEventListener(
  "toggle",
  async (event) => {
    const box = event.target;
    const address = box.dataset.load;
    if (!box.open || !address) return;
    delete box.dataset.load;
    const page = await pageAt(address);
    const part = page && page.getElementById(box.dataset.part);
    if (part) box.append(document.adoptNode(part));
  },
  true,
);

// --- a person's verdict ----------------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const button = event.target.closest("form[data-patch] button[data-success]");
  if (!button) return;
  const form = button.form;
  const said = form.querySelector(".answer");
  const asked = {
    success: JSON.parse(button.dataset.success),
    reason: form.elements.reason.value,
    actor: form.elements.actor.value,
  };
  const answer = await fetch(form.dataset.patch, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(asked),
  });
  if (answer.ok) {
    localStorage.setItem("actor", asked.actor);
    location.reload();
  } else {
    said.textContent = (await answer.json()).error || "it could not be stored";
  }
});

const actor = document.querySelector("form[data-patch] input[name=actor]");
if (actor && !actor.value) actor.value = localStorage.getItem("actor") || "";
