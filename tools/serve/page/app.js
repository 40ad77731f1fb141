// The page: conversations with the model of this server. Everything stays in this browser.
import * as api from "./api.js";
import {make} from "./markdown.js";
import {fitHeight, messageView} from "./messages.js";
import {DEFAULTS, fieldsOf, fill} from "./settings.js";
import * as store from "./store.js";
import * as tree from "./tree.js";

const $ = (id) => document.getElementById(id);
const settings = {...DEFAULTS, ...store.readSettings()};
let conversation = tree.newConversation();
let conversations = [];
let models = [];
let writing = null;  // {node, item, control} while an answer comes

// ---- what is seen ----

const say = (text) => ($("status").textContent = text);

function showTheme() {
  if (settings.theme) document.documentElement.dataset.theme = settings.theme;
  else delete document.documentElement.dataset.theme;
}

function showList() {
  $("list").replaceChildren(...conversations.map((each) => {
    const open = make("button", {class: "open", title: each.title, onclick: () => openConversation(each)}, each.title || "Empty conversation");
    if (each.id === conversation.id) open.setAttribute("aria-current", "true");
    const drop = make("button", {class: "icon", "aria-label": `Delete ${each.title}`, title: "Delete", onclick: () => dropConversation(each)}, "×");
    return make("li", {}, open, drop);
  }));
}

function showLog() {
  const path = tree.pathOf(conversation);
  const names = new Map(path.flatMap((node) => (node.calls ?? []).map((call) => [call.id, call.name])));
  const items = path.map((node, i) => {
    const place = {siblings: tree.childrenOf(conversation, node.parent), last: i === path.length - 1, busy: writing !== null};
    return messageView(node.role === "tool" ? {...node, name: names.get(node.callId)} : node, place, actions);
  });
  $("log").replaceChildren(...items);
  $("title").textContent = conversation.title || "New conversation";
  document.title = conversation.title ? `${conversation.title} – GRETA` : "GRETA";
  if (path.length === 0) $("log").append(make("li", {class: "empty"}, "Ask something. Conversations stay in this browser."));
  showUse(path.findLast((node) => node.counts)?.counts);
}

function showUse(counts) {
  const context = models.find((model) => model.id === $("model").value)?.context_length ?? 0;
  const used = (counts?.prompt ?? 0) + (counts?.generated ?? 0);
  $("gauge").hidden = !used || !context;
  $("used").max = context || 1;
  $("used").value = used;
  $("used-text").textContent = `${used} of ${context} tokens of the context`;
}

function showBusy() {
  $("send").hidden = writing !== null;
  $("stop").hidden = writing === null;
}

const atEnd = () => $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 80;
const toEnd = () => ($("log").scrollTop = $("log").scrollHeight);

// ---- conversations ----

async function keep() {
  conversation.changed = Date.now();
  if (!conversations.includes(conversation)) conversations.unshift(conversation);
  showList();
  await store.put(conversation);
}

function openConversation(each) {
  stop();
  conversation = each;
  closeSide();
  showLog();
  showList();
  toEnd();
  $("input").focus();
}

async function dropConversation(each) {
  if (!confirm(`Delete “${each.title || "the empty conversation"}”?`)) return;
  conversations = conversations.filter((other) => other !== each);
  await store.drop(each.id);
  if (each === conversation) openConversation(tree.newConversation());
  else showList();
}

function download(text, name) {
  const link = make("a", {href: URL.createObjectURL(new Blob([text], {type: "application/json"})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function importFile(file) {
  try {
    const found = tree.imported(await file.text());
    for (const each of found) await store.put(each);
    conversations = await store.all();
    say(`${found.length} conversations were imported`);
    if (found.length > 0) openConversation(conversations.find((each) => each.id === found[0].id) ?? found[0]);
  } catch (error) {
    say(`The file was not imported: ${error.message}`);
  }
}

// ---- answers ----

function takeDelta(node, delta) {
  if (delta.reasoning_content) node.reasoning = (node.reasoning ?? "") + delta.reasoning_content;
  if (delta.content) node.content += delta.content;
  for (const part of delta.tool_calls ?? []) {
    node.calls ??= [];
    const call = (node.calls[part.index] ??= {id: "", name: "", arguments: ""});
    if (part.id) call.id = part.id;
    if (part.function?.name) call.name = part.function.name;
    call.arguments += part.function?.arguments ?? "";
  }
}

function takeCounts(node, chunk) {
  const {usage, timings} = chunk;
  const earlier = node.begun ?? 0;  // of an answer that goes on
  node.counts = {
    prompt: usage.prompt_tokens - earlier, cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    generated: usage.completion_tokens + earlier, speed: timings?.predicted_per_second ?? 0,
  };
}

// Live figures, by what has come so far.
function sayProgress(clock, chunk) {
  const progress = chunk.prompt_progress;
  if (progress) {
    clock.prompt = `prompt ${progress.total}, ${progress.cache} of it cached`;
    say(progress.processed < progress.total ? `Reading: ${progress.processed} of ${progress.total} tokens, ${progress.cache} of them cached` : "Writing …");
  }
  const delta = chunk.choices?.[0]?.delta;
  if (!delta?.content && !delta?.reasoning_content) return;
  const now = performance.now();
  clock.first ??= now;
  clock.count += 1;
  if (now - clock.said < 250 || clock.count < 2) return;
  clock.said = now;
  const speed = (1000 * (clock.count - 1)) / (now - clock.first);
  say([`Writing: ${clock.count} tokens`, `${speed.toFixed(1)} tokens/s`, clock.prompt].filter(Boolean).join(" · "));
}

async function receive(node, body, update) {
  const clock = {count: 0, said: 0};
  for await (const chunk of api.chat(body, settings.key, writing.control.signal)) {
    const choice = chunk.choices?.[0];
    node.model = chunk.model;
    if (choice?.delta) takeDelta(node, choice.delta);
    if (choice?.finish_reason) node.finish = choice.finish_reason;
    if (chunk.usage) takeCounts(node, chunk);
    sayProgress(clock, chunk);
    update();
  }
}

// Has the model write `node`, which is the end of the path.
async function write(node) {
  const control = new AbortController();
  const path = tree.pathOf(conversation);
  const asked = node.content ? path : path.slice(0, -1);
  const own = conversation;
  writing = {node, control};
  delete node.error, delete node.stopped, delete node.finish;
  showBusy();
  showLog();
  toEnd();
  const item = $("log").lastChild;
  let due = 0;
  const update = () => {
    due ||= requestAnimationFrame(() => {
      due = 0;
      const follow = atEnd();
      item.update();
      if (follow) toEnd();
    });
  };
  say("Waiting for the model …");
  try {
    const body = {...fieldsOf(settings), model: $("model").value || undefined, messages: tree.messagesOf(asked, settings.system),
      stream: true, stream_options: {include_usage: true}, return_progress: true};
    await receive(node, body, update);
    say(`Done: ${node.counts?.generated ?? 0} tokens`);
  } catch (error) {
    node.stopped = error.name === "AbortError";
    if (!node.stopped) node.error = error.message;
    say(node.stopped ? "Stopped" : "It failed");
    if (error.status === 401) openSettings("set-key");
  }
  cancelAnimationFrame(due);
  if (writing?.node === node) writing = null;
  showBusy();
  if (conversation === own) {
    const follow = atEnd();
    showLog();
    if (follow) toEnd();
  }
  own.changed = Date.now();
  await store.put(own);
}

function stop() {
  writing?.control.abort();
  writing = null;
  showBusy();
}

function answer() {
  const node = tree.add(conversation, conversation.leaf, {role: "assistant", content: "", model: $("model").value});
  void keep();
  return write(node);
}

function send() {
  const text = $("input").value;
  if (!text.trim() || writing) return;
  $("input").value = "";
  fitHeight($("input"));
  tree.add(conversation, conversation.leaf, {role: "user", content: text});
  void answer();
}

const actions = {
  focus: () => $("input").focus(),
  choose(id) {
    if (writing) return;
    tree.choose(conversation, id);
    showLog();
    void keep();
  },
  edit(node, text) {
    tree.add(conversation, node.parent, {role: "user", content: text});
    $("input").focus();
    void answer();
  },
  regenerate(node) {
    conversation.leaf = node.parent;
    void answer();
  },
  goOn(node) {
    node.begun = node.counts?.generated ?? 0;
    void write(node);
  },
  remove(node) {
    tree.remove(conversation, node.id);
    showLog();
    void keep();
  },
  results(node, texts) {
    node.calls.forEach((call, i) => tree.add(conversation, conversation.leaf, {role: "tool", callId: call.id, content: texts[i]}));
    void answer();
  },
};

// ---- the server ----

async function loadModels() {
  models = await api.models(settings.key);
  const chosen = settings.model;
  $("model").replaceChildren(...models.map((model) =>
    make("option", {value: model.id, selected: model.id === chosen}, model.status?.value === "unloaded" ? `${model.id} (not loaded)` : model.id)));
  $("model").hidden = models.length === 0;
  showUse(tree.pathOf(conversation).findLast((node) => node.counts)?.counts);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function meetServer() {
  for (;;) {
    try {
      await api.health();
      await loadModels();
      return say("");
    } catch (error) {
      if (error.status === 401) return openSettings("set-key");
      const part = error.details?.progress;
      say(part === undefined ? `No answer: ${error.message}` : `The model is loading: ${error.details.stage}, ${Math.round(100 * part)} %`);
      await pause(error.status === 503 ? 500 : 3000);
    }
  }
}

// ---- the frame ----

function closeSide() {
  document.body.classList.remove("side");
  $("side-open").setAttribute("aria-expanded", "false");
}

function toggleSide() {
  const open = document.body.classList.toggle("side");
  $("side-open").setAttribute("aria-expanded", String(open));
  if (open) $("new").focus();
}

function openSettings(focus) {
  fill($("fields"), settings, (name, value) => {
    settings[name] = value;
    store.writeSettings(settings);
    showTheme();
  });
  if (!$("settings").open) $("settings").showModal();
  if (focus) $(focus).focus();
}

const lastOf = (role) => tree.pathOf(conversation).findLast((node) => node.role === role);

function editLast() {
  const items = [...document.querySelectorAll("#log > .message.user")];
  items.at(-1)?.edit();
}

const SHORTCUTS = {
  n: () => openConversation(tree.newConversation()),
  b: toggleSide,
  s: () => openSettings(),
  r: () => !writing && lastOf("assistant") && actions.regenerate(lastOf("assistant")),
};

function onKey(event) {
  const typing = event.target.matches("input, textarea, select");
  const shortcut = event.altKey && !event.ctrlKey && !event.metaKey && SHORTCUTS[event.key.toLowerCase()];
  if (shortcut) {
    event.preventDefault();
    shortcut();
  } else if (event.key === "Escape" && !$("settings").open) {
    if (writing) stop();
    else closeSide();
  } else if (event.key === "/" && !typing && !$("settings").open) {
    event.preventDefault();
    $("input").focus();
  }
}

function onInputKey(event) {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  } else if (event.key === "ArrowUp" && !$("input").value && !writing) {
    event.preventDefault();
    editLast();
  }
}

function listen() {
  const on = (id, kind, act) => $(id).addEventListener(kind, act);
  on("write", "submit", (event) => (event.preventDefault(), send()));
  on("input", "keydown", onInputKey);
  on("input", "input", () => fitHeight($("input")));
  on("stop", "click", stop);
  on("new", "click", SHORTCUTS.n);
  on("side-open", "click", toggleSide);
  on("side-close", "click", closeSide);
  on("settings-open", "click", () => openSettings());
  on("settings", "close", () => (void meetServer(), $("input").focus()));
  on("reset", "click", () => {
    Object.assign(settings, DEFAULTS, {key: settings.key});
    store.writeSettings(settings);
    showTheme();
    openSettings();
  });
  on("export", "click", () => download(tree.exported(conversations), "greta-conversations.json"));
  on("import", "click", () => $("import-file").click());
  on("import-file", "change", async () => {
    if ($("import-file").files[0]) await importFile($("import-file").files[0]);
    $("import-file").value = "";
  });
  on("model", "change", () => {
    settings.model = $("model").value;
    store.writeSettings(settings);
    showUse(tree.pathOf(conversation).findLast((node) => node.counts)?.counts);
  });
  document.addEventListener("keydown", onKey);
}

showTheme();
listen();
showLog();
void meetServer();
if (!(await store.kept())) say("This browser keeps nothing: conversations end with the page.");
const kept = await store.all();
conversations = [...conversations, ...kept.filter((each) => !conversations.some((other) => other.id === each.id))];
showList();
