"use strict";
// Shows the turn that the run waits for, and sends what a person does as an action in pixels of the screenshot. What the
// page knows comes from /api/view alone, so it may be closed and opened at any time.

const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const token = takeToken();
let view = null; // the newest answer of /api/view
let sending = false;
let cursor = null; // where the keyboard points, in pixels of the screenshot
let from = null; // the first of the two points of a drag by clicks or keys
const pictures = new Map(); // object URLs by digest

// --- light and dark --------------------------------------------------------------------------------------------------

if (localStorage.getItem("theme")) root.dataset.theme = localStorage.getItem("theme");
$("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

// --- the server ------------------------------------------------------------------------------------------------------

function takeToken() {
  // it leaves the address at once, so that it is in no history and no screenshot of the page
  if (location.hash.length > 1) {
    sessionStorage.setItem("token", location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") || "";
}

async function ask(path, body) {
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  return fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: body && JSON.stringify(body) });
}

async function follow() {
  for (let version = 0; ; ) {
    try {
      const answer = await ask(`/api/view?after=${version}`);
      if (answer.status === 401) return closed("This page needs the whole address that the terminal shows, with what follows the #.");
      if (!answer.ok) throw new Error(await answer.text());
      const next = await answer.json();
      version = next.version;
      $("link").textContent = "";
      await show(next);
      if (next.over) return closed("That was all: the episodes are stored, and this page can be closed.");
    } catch {
      $("link").textContent = "the run is away; trying again …";
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

function closed(words) {
  $("link").textContent = "";
  $("goal").textContent = words;
  for (const id of ["stage", "controls", "proposal", "running", "said", "note"]) $(id).hidden = true;
  for (const id of ["task", "turn", "count"]) $(id).textContent = "";
  $("spent").hidden = true;
}

async function picture(digest) {
  if (!pictures.has(digest)) {
    const answer = await ask(`/api/screens/${digest}`);
    if (!answer.ok) return "";
    pictures.set(digest, URL.createObjectURL(await answer.blob()));
  }
  return pictures.get(digest);
}

function turn() {
  return { episode: view.turn.episode, turn: view.turn.index };
}

async function send(path, body, words) {
  if (!view?.waiting || sending) return false;
  sending = true;
  enable();
  try {
    const answer = await ask(path, { ...turn(), ...body });
    const found = await answer.json();
    if (!answer.ok) {
      tell(found.detail, "", true);
      return false;
    }
    if (found.action) {
      tell(`understood: ${found.action.words}`, found.said);
      draw(found.action);
    } else tell(words || "");
    return true;
  } catch {
    tell("the run can't be reached", "", true);
    return false;
  } finally {
    sending = false;
    enable();
  }
}

const act = (action) => send("/api/act", { action });

function tell(words, said = "", bad = false) {
  $("said").textContent = words;
  $("said").classList.toggle("bad", bad);
  if (said) {
    const code = document.createElement("code");
    code.textContent = said;
    $("said").append(" · recorded as ", code);
  }
}

// --- what is shown ---------------------------------------------------------------------------------------------------

async function show(next) {
  const before = view?.turn;
  view = next;
  const now = view.turn;
  $("count").textContent = now ? `episode ${now.number} of ${view.episodes}` : `${view.episodes} episodes`;
  result(view.last);
  if (!now) return enable();
  const fresh = now.episode !== before?.episode;
  if (fresh || now.index !== before?.index) {
    if (fresh) forget();
    from = null;
    if (cursor && now.screen.width !== before?.screen.width) cursor = null;
    await screen(now);
  }
  $("goal").textContent = now.goal;
  $("task").textContent = now.task;
  $("turn").textContent = `· turn ${now.index + 1} of at most ${now.max_turns}`;
  Object.assign($("spent"), { max: now.max_turns, value: now.index, hidden: false });
  $("note").textContent = now.note;
  $("note").hidden = !now.note;
  proposal(now.proposal);
  offers(now);
  await turns(now);
  enable();
}

function forget() {
  for (const url of pictures.values()) URL.revokeObjectURL(url);
  pictures.clear();
  cursor = null;
  tell("");
  $("message").value = $("text").value = "";
}

async function screen(now) {
  const { digest, width, height } = now.screen;
  $("shot").src = await picture(digest);
  $("shot").width = width;
  $("shot").height = height;
  $("shot").hidden = false;
  $("stage").classList.toggle("wide", width > height);
  $("stage").style.setProperty("--ratio", width / height);
  $("marks").setAttribute("viewBox", `0 0 ${width} ${height}`);
  draw(null);
}

function result(last) {
  $("last").hidden = !last;
  if (!last || $("last").dataset.episode === last.episode) return;
  $("last").dataset.episode = last.episode;
  const words = { true: "done", false: "not done", null: last.stop === "cancelled" ? "skipped" : "no verdict" }[last.success];
  $("last").className = `panel result ${last.success === true ? "good" : last.success === false ? "bad" : ""}`;
  $("last").textContent = `${last.task}: ${words}, ${last.turns} turn${last.turns === 1 ? "" : "s"}`;
  if (last.stop === "max_turns") $("last").append("; no turn was left");
  if (last.failure) $("last").append(`; ${last.failure}`);
  const open = [...last.missed.map((c) => `${c.what}: it is ${c.is}`), ...last.side_effects.map((s) => `also changed: ${s}`)];
  if (!open.length) return;
  const list = document.createElement("ul");
  for (const text of open) list.append(item(text));
  $("last").append(list);
}

function item(text) {
  const found = document.createElement("li");
  found.textContent = text;
  return found;
}

function proposal(found) {
  $("proposal").hidden = !(found && view.waiting);
  $("running").hidden = !(view.assist && !view.stepwise);
  if (!found) return;
  $("would").textContent = found.action ? found.action.words : `do nothing that can be read (${found.trouble})`;
  $("would-say").textContent = found.said;
  draw(null);
}

let offered = "";
function offers(now) {
  const has = (name) => now.offers.includes(name);
  $("typing").hidden = !has("type");
  $("enter").parentElement.hidden = !has("type and enter");
  $("pressing").hidden = !has("key");
  $("opening").hidden = !has("open app");
  $("answer").hidden = !has("answer");
  if (offered === now.offers.join()) return;
  offered = now.offers.join();
  const pointing = ["click", "double click", "triple click", "right click", "middle click", "long press", "move", "swipe", "drag"];
  const names = pointing.filter((name) => has(name) && !(name === "drag" && has("swipe") && now.kind === "phone"));
  $("gestures").querySelectorAll("label").forEach((label) => label.remove());
  for (const name of names) {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "gesture", value: name, checked: name === "click" });
    label.append(input, name === "click" && now.kind === "phone" ? "tap" : name);
    $("gestures").append(label);
  }
  $("buttons").replaceChildren();
  for (const name of ["back", "home", "recents", "enter", "menu", "power", "volume_up", "volume_down"]) {
    if (has(`button ${name}`)) button(name.replace("_", " "), { kind: "button", name });
  }
  if (has("scroll")) for (const direction of ["up", "down"]) button(`scroll ${direction}`, () => scrolled(direction));
  if (has("wait")) button("wait", { kind: "wait", seconds: 1 });
}

function button(words, does) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: words });
  made.addEventListener("click", () => act(typeof does === "function" ? does() : does));
  $("buttons").append(made);
}

async function turns(now) {
  const items = await Promise.all([...now.turns].reverse().map(async (one) => {
    const found = document.createElement("li");
    const thumb = Object.assign(document.createElement("span"), { className: "thumb" });
    const image = Object.assign(document.createElement("img"), { src: await picture(one.screen.digest), alt: "" });
    const over = svg("svg", { class: "marks", viewBox: `0 0 ${one.screen.width} ${one.screen.height}` });
    if (one.action) mark(over, one.action, one.screen);
    thumb.append(image, over);
    const words = document.createElement("p");
    words.textContent = `${one.index + 1}. ${one.action ? one.action.words : "no action"}`;
    if (one.trouble) words.append(Object.assign(document.createElement("span"), { className: "bad-text", textContent: ` ${one.trouble}` }));
    else if (one.changed === false) words.append(Object.assign(document.createElement("span"), { className: "dim", textContent: " nothing changed" }));
    if (view.assist) words.append(" ", Object.assign(document.createElement("span"), { className: one.sampled ? "badge live" : "badge human", textContent: one.sampled ? "policy" : "you" }));
    found.append(thumb, words);
    return found;
  }));
  if (now === view.turn) $("turns").replaceChildren(...items);
}

function enable() {
  const may = Boolean(view?.waiting) && !sending;
  $("controls").querySelectorAll("button, input, textarea").forEach((one) => (one.disabled = one.matches("button") && !may));
  for (const id of ["let", "walk"]) $(id).disabled = !may;
  $("stage").classList.toggle("busy", !may);
  const doing = !view?.turn || view.turn.ended ? "the next episode is made ready …" : "the device is at work …";
  $("veil").textContent = view?.assist && !view.stepwise && view.turn && !view.turn.ended ? "the policy acts" : doing;
  $("veil").hidden = may || !view || view.over;
}

// --- marks -----------------------------------------------------------------------------------------------------------

function svg(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function mark(layer, action, size, more = "") {
  const unit = Math.max(1, Math.min(size.width, size.height) / 100);
  const group = svg("g", { class: more });
  const [first, ...rest] = action.points;
  if (first) {
    for (const [kind, width] of [["halo", 2.4], ["mark", 1.2]]) {
      group.append(svg("circle", { class: kind, cx: first[0] + 0.5, cy: first[1] + 0.5, r: (rest.length ? 2 : 5) * unit, "stroke-width": width * unit }));
      if (rest.length) group.append(svg("polyline", { class: kind, points: action.points.map((p) => p.join()).join(" "), "stroke-width": width * unit }));
    }
  }
  layer.append(group);
}

function draw(action) {
  const now = view?.turn;
  if (!now) return;
  $("marks").replaceChildren();
  const wanted = now.proposal?.action;
  if (wanted && !now.ended) mark($("marks"), wanted, now.screen, "proposal");
  if (action) mark($("marks"), action, now.screen);
  const unit = Math.max(1, Math.min(now.screen.width, now.screen.height) / 100);
  if (from) mark($("marks"), { points: [from] }, now.screen);
  if (!cursor) return;
  const [x, y] = cursor;
  for (const [kind, width] of [["halo", 1.6], ["mark", 0.7]]) {
    $("marks").append(svg("path", { class: kind, d: `M${x - 6 * unit} ${y}h${12 * unit}M${x} ${y - 6 * unit}v${12 * unit}`, "stroke-width": width * unit }));
  }
}

// --- the screen: mouse and finger ------------------------------------------------------------------------------------

const HOLD_MS = 600; // longer is a long press
const STILL_PX = 6; // on the page: less is no drag
const AGAIN_MS = 300; // within this a second click is a double click
const SCROLL_MS = 250; // turns of the wheel within this are one scroll
let press = null;
let clicked = null;
let wheel = null;

const gesture = () => $("gestures").querySelector(":checked")?.value || "click";
const can = (name) => Boolean(view?.turn?.offers.includes(name));

function place(event) {
  const box = $("shot").getBoundingClientRect();
  const { width, height } = view.turn.screen;
  const inside = (value, most) => Math.min(Math.max(Math.floor(value), 0), most - 1);
  return [inside(((event.clientX - box.left) / box.width) * width, width), inside(((event.clientY - box.top) / box.height) * height, height)];
}

$("stage").addEventListener("pointerdown", (event) => {
  if (!view?.waiting || sending || $("shot").hidden) return;
  $("stage").focus({ preventScroll: true });
  $("stage").setPointerCapture(event.pointerId);
  press = { at: performance.now(), x: event.clientX, y: event.clientY, button: event.button, path: [place(event)], moved: false };
  cursor = null;
  event.preventDefault();
});

$("stage").addEventListener("pointermove", (event) => {
  if (!press) return;
  press.moved ||= Math.hypot(event.clientX - press.x, event.clientY - press.y) > STILL_PX;
  press.path.push(place(event));
  if (press.moved) draw({ points: press.path });
});

$("stage").addEventListener("pointercancel", () => (press = null));
$("stage").addEventListener("contextmenu", (event) => event.preventDefault());

$("stage").addEventListener("pointerup", (event) => {
  if (!press) return;
  const { at, button, path, moved } = press;
  press = null;
  if (moved) return slide([...path, place(event)]);
  const [point] = path;
  if (button === 2) return point1("right click", point);
  if (button === 1) return point1("middle click", point);
  if (gesture() === "click" && performance.now() - at > HOLD_MS && can("long press")) return point1("long press", point);
  if (gesture() !== "click" || view.turn.kind === "phone" || !can("double click")) return point1(gesture(), point);
  // a second click may follow
  if (clicked && Math.hypot(point[0] - clicked.point[0], point[1] - clicked.point[1]) < 8) {
    clearTimeout(clicked.timer);
    const count = clicked.count + 1;
    const most = can("triple click") ? 3 : 2;
    clicked = { point, count, timer: setTimeout(sendClicks, count === most ? 0 : AGAIN_MS) };
  } else clicked = { point, count: 1, timer: setTimeout(sendClicks, AGAIN_MS) };
});

function sendClicks() {
  const { point, count } = clicked;
  clicked = null;
  point1(["click", "double click", "triple click"][count - 1], point);
}

function point1(name, [x, y]) {
  const click = { click: {}, "double click": { count: 2 }, "triple click": { count: 3 }, "right click": { button: "right" }, "middle click": { button: "middle" } }[name];
  if (click) return act({ kind: "click", x, y, ...click });
  if (name === "long press") return act({ kind: "long_press", x, y });
  if (name === "move") return act({ kind: "move", x, y });
  if (!from) {
    from = [x, y];
    tell(`${name} from (${x}, ${y}): choose where to`);
    return draw(null);
  }
  const path = [from, [x, y]];
  from = null;
  return slide(path);
}

function slide(path) {
  const points = thinned(path);
  const [x, y] = points[0];
  const [x2, y2] = points[points.length - 1];
  const finger = gesture() === "swipe" || (gesture() !== "drag" && view.turn.kind === "phone");
  return act(finger && can("swipe") ? { kind: "swipe", x, y, x2, y2 } : { kind: "drag", path: can("drag") ? points : [points[0], [x2, y2]] });
}

function thinned(path) {
  // Ramer, Douglas and Peucker: points that lie within two pixels of the line between others say nothing
  if (path.length < 3) return path;
  const [a, b] = [path[0], path[path.length - 1]];
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
  let far = 0;
  let at = 0;
  for (let i = 1; i < path.length - 1; i++) {
    const [x, y] = path[i];
    const off = length ? Math.abs((b[1] - a[1]) * (x - a[0]) - (b[0] - a[0]) * (y - a[1])) / length : Math.hypot(x - a[0], y - a[1]);
    if (off > far) [far, at] = [off, i];
  }
  const tolerance = Math.max(2, Math.min(view.turn.screen.width, view.turn.screen.height) / 40);
  return far <= tolerance ? [a, b] : [...thinned(path.slice(0, at + 1)), ...thinned(path.slice(at)).slice(1)];
}

$("stage").addEventListener("wheel", (event) => {
  event.preventDefault();
  if (!view?.waiting || sending) return;
  wheel ||= { x: 0, y: 0, point: place(event), timer: setTimeout(sendWheel, SCROLL_MS) };
  const lines = event.deltaMode === 1 ? 40 : 1;
  wheel.x += event.deltaX * lines;
  wheel.y += event.deltaY * lines;
}, { passive: false });

function sendWheel() {
  const { x, y, point } = wheel;
  wheel = null;
  const across = Math.abs(x) > Math.abs(y);
  const direction = across ? (x > 0 ? "right" : "left") : y > 0 ? "down" : "up";
  act(scrolled(direction, Math.round(Math.abs(across ? x : y)), point));
}

function scrolled(direction, amount, point) {
  const { width, height } = view.turn.screen;
  const [x, y] = point || cursor || [Math.floor(width / 2), Math.floor(height / 2)];
  const most = Math.floor((direction === "up" || direction === "down" ? height : width) * 0.75);
  return { kind: "scroll", x, y, direction, amount: Math.max(1, Math.min(amount || Math.floor(most * 0.67), most)) };
}

// --- the screen: keyboard --------------------------------------------------------------------------------------------

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

$("stage").addEventListener("keydown", (event) => {
  if (!view?.turn || event.ctrlKey || event.metaKey) return;
  const { width, height } = view.turn.screen;
  const step = STEPS[event.key];
  if (step) {
    const far = event.altKey ? 1 : event.shiftKey ? 50 : 10;
    const [x, y] = cursor || [Math.floor(width / 2), Math.floor(height / 2)];
    cursor = [Math.min(Math.max(x + far * step[0], 0), width - 1), Math.min(Math.max(y + far * step[1], 0), height - 1)];
    tell(`pointing at (${cursor.join(", ")})`);
    draw(null);
  } else if (event.key === "Enter" && cursor) point1(gesture(), cursor);
  else if (event.key === "PageDown" || event.key === "PageUp") act(scrolled(event.key === "PageDown" ? "down" : "up"));
  else if (event.key.length === 1 && !event.altKey && !$("typing").hidden) $("text").focus(), ($("text").value += event.key);
  else return;
  event.preventDefault();
});

// --- text, keys, apps, the end ---------------------------------------------------------------------------------------

function sendsOnEnter(field, form) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
}
sendsOnEnter($("text"), $("typing"));

$("typing").addEventListener("submit", async (event) => {
  event.preventDefault();
  if ($("text").value && (await act({ kind: "type", text: $("text").value, submit: $("enter").checked }))) $("text").value = "";
});

$("pressing").addEventListener("submit", async (event) => {
  event.preventDefault();
  const keys = $("key").value === "+" ? ["+"] : $("key").value.split("+").map((key) => key.trim()).filter(Boolean);
  if (keys.length && (await act({ kind: "key", keys }))) $("key").value = "";
});

$("opening").addEventListener("submit", async (event) => {
  event.preventDefault();
  if ($("app").value && (await act({ kind: "open_app", name: $("app").value }))) $("app").value = "";
});

$("ending").addEventListener("submit", (event) => {
  event.preventDefault();
  act({ kind: "finish", success: true, message: $("message").value });
});
$("give-up").addEventListener("click", () => act({ kind: "finish", success: false, message: $("message").value }));
$("answer").addEventListener("click", async () => {
  if (!$("message").value) return $("message").focus();
  if (await act({ kind: "answer", text: $("message").value })) $("message").value = "";
});
$("skip").addEventListener("click", () => send("/api/skip", {}, "skipped"));

// --- a policy that is corrected --------------------------------------------------------------------------------------

$("let").addEventListener("click", () => send("/api/let-it", {}));
$("walk").addEventListener("click", () => ask("/api/walk", { stepwise: false }));
$("take").addEventListener("click", () => ask("/api/walk", { stepwise: true }));

follow();
