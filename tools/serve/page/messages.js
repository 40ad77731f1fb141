// How one message looks, and its buttons.
import {copy, make, show} from "./markdown.js";

const button = (text, title, act) => make("button", {type: "button", class: "small", title, onclick: act}, text);

function branches(node, siblings, act) {
  if (siblings.length < 2) return [];
  const at = siblings.indexOf(node);
  const step = (text, label, to) => {
    const arrow = button(text, label, () => act.choose(siblings[to].id));
    arrow.setAttribute("aria-label", label);
    arrow.disabled = to < 0 || to >= siblings.length;
    return arrow;
  };
  return [make("span", {class: "branches"}, step("‹", "Previous version", at - 1), `${at + 1} / ${siblings.length}`,
    step("›", "Next version", at + 1))];
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function reasoningView(node) {
  const body = make("div", {class: "text"});
  const details = make("details", {class: "reasoning"}, make("summary", {}, "Reasoning"), body);
  details.update = () => {
    details.hidden = !node.reasoning;
    details.firstChild.textContent = node.content || node.calls?.length ? "Reasoning" : "Reasoning …";
    if (node.reasoning) show(body, node.reasoning);
  };
  return details;
}

function callsView(node) {
  const box = make("div", {class: "calls"});
  box.update = () => {
    box.replaceChildren(...(node.calls ?? []).map((call) =>
      make("details", {class: "call"}, make("summary", {}, `Calls ${call.name || "…"}`), make("pre", {tabindex: "0"}, pretty(call.arguments)))));
  };
  return box;
}

// Asks for the results of calls at the end of a conversation.
function resultsForm(node, act) {
  const areas = node.calls.map((call, i) => make("textarea", {rows: "2", id: `result-${node.id}-${i}`}));
  const form = make("form", {class: "results"}, ...node.calls.flatMap((call, i) => [make("label", {for: areas[i].id}, `Result of ${call.name}`), areas[i]]),
    make("button", {type: "submit", class: "small"}, "Send the results"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act.results(node, areas.map((area) => area.value));
  });
  return form;
}

const FINISHES = {length: "the limit of tokens was reached", stopped: "stopped"};

function footText(node) {
  const {counts} = node;
  const parts = [];
  if (node.stopped) parts.push(FINISHES.stopped);
  else if (node.finish === "length") parts.push(FINISHES.length);
  if (counts?.generated) parts.push(`${counts.generated} tokens`);
  if (counts?.speed) parts.push(`${counts.speed.toFixed(1)} tokens/s`);
  if (counts?.prompt) parts.push(`prompt ${counts.prompt}, ${counts.cached ?? 0} of it cached`);
  return parts.join(" · ");
}

export function fitHeight(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight * 0.4)}px`;
}

// A message in place of which its text can be edited.
function editor(node, act, leave) {
  const area = make("textarea", {"aria-label": "Edit the message", class: "edit"});
  area.value = node.content;
  const save = () => (area.value.trim() ? act.edit(node, area.value) : leave());
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save();
    else if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
  });
  area.addEventListener("input", () => fitHeight(area));
  const box = make("div", {class: "editor"}, area, make("div", {class: "row"}, button("Save", "Enter", save), button("Cancel", "Esc", leave)));
  box.begin = () => {
    fitHeight(area);
    area.focus();
  };
  return box;
}

// `place` says where the message is: its siblings, whether it is the last, and whether it is being written.
export function messageView(node, place, act) {
  const text = make("div", {class: "text"});
  const reasoning = reasoningView(node), calls = callsView(node);
  const error = make("p", {class: "error", role: "alert"});
  const counts = make("span", {class: "counts"});
  const foot = make("div", {class: "foot"});
  const who = {user: "You", assistant: node.model || "Model", tool: `Result of ${node.name || "a call"}`}[node.role];
  const name = make("div", {class: "who"}, who);
  const item = make("li", {class: `message ${node.role}`, "aria-label": who}, name, reasoning, text, calls,
    error, foot);
  item.edit = () => {
    const box = editor(node, act, () => {
      box.replaceWith(text);
      act.focus();
    });
    text.replaceWith(box);
    box.begin();
  };
  item.update = () => {
    if (node.role === "assistant" && node.model) name.textContent = node.model;
    if (node.role === "assistant") show(text, node.content);
    else text.textContent = node.content;
    reasoning.update();
    calls.update();
    error.textContent = node.error ?? "";
    error.hidden = !node.error;
    counts.textContent = footText(node);
  };
  const buttons = [];
  if (!place.busy) {
    buttons.push(button("Copy", "Copy the text", () => copy(node.content)));
    if (node.role === "user") buttons.push(button("Edit", "Ask in other words", item.edit));
    if (node.role === "assistant") buttons.push(button("Regenerate", "Answer once more", () => act.regenerate(node)));
    if (node.role === "assistant" && place.last && node.content && !node.calls?.length && (node.stopped || node.finish === "length"))
      buttons.push(button("Continue", "Go on with this answer", () => act.goOn(node)));
    buttons.push(button("Delete", "Delete the message and what follows", () => act.remove(node)));
  }
  foot.append(...branches(node, place.siblings, act), counts, make("span", {class: "buttons"}, ...buttons));
  item.update();
  if (place.last && !place.busy && node.calls?.length) item.append(resultsForm(node, act));
  return item;
}
