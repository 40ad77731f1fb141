// The settings: what the dialog shows, and what they make of a request.
import {make} from "./markdown.js";

// Fields of the dialog. Those with `send` are fields of a request, which leave it alone while they are empty.
const FIELDS = [
  {name: "system", label: "System message", kind: "area"},
  {name: "theme", label: "Colours", kind: "choice", choices: [["", "as the system"], ["light", "light"], ["dark", "dark"]]},
  {name: "temperature", label: "Temperature", kind: "number", min: 0, step: 0.1, send: true},
  {name: "top_p", label: "Top p", kind: "number", min: 0, max: 1, step: 0.05, send: true},
  {name: "top_k", label: "Top k", kind: "number", min: 0, step: 1, send: true},
  {name: "min_p", label: "Min p", kind: "number", min: 0, max: 1, step: 0.01, send: true},
  {name: "repeat_penalty", label: "Repeat penalty", kind: "number", min: 0.1, step: 0.05, send: true},
  {name: "presence_penalty", label: "Presence penalty", kind: "number", step: 0.1, send: true},
  {name: "frequency_penalty", label: "Frequency penalty", kind: "number", step: 0.1, send: true},
  {name: "seed", label: "Seed", kind: "number", min: -1, step: 1, send: true},
  {name: "max_tokens", label: "Most tokens of an answer", kind: "number", min: 1, step: 1, send: true},
  {name: "thinking", label: "Reasoning", kind: "choice", choices: [["", "as the template has it"], ["on", "on"], ["off", "off"]]},
  {name: "thinking_budget_tokens", label: "Most tokens of reasoning", kind: "number", min: 0, step: 1, send: true},
  {name: "tools", label: "Tools (a JSON list, in OpenAI's form)", kind: "area", json: "array"},
  {name: "more", label: "Further fields of requests (a JSON object)", kind: "area", json: "object"},
  {name: "key", label: "API key", kind: "password"},
];

export const DEFAULTS = Object.fromEntries(FIELDS.map((field) => [field.name, ""]));

function fault(field, value) {
  if (!field.json || !value.trim()) return "";
  try {
    const json = JSON.parse(value);
    const fits = field.json === "array" ? Array.isArray(json) : json !== null && typeof json === "object" && !Array.isArray(json);
    return fits ? "" : `a JSON ${field.json} is expected`;
  } catch (error) {
    return error.message;
  }
}

function control(field, value) {
  const id = `set-${field.name}`;
  if (field.kind === "choice") {
    const options = field.choices.map(([key, text]) => make("option", {value: key, selected: key === value}, text));
    return make("select", {id}, ...options);
  }
  if (field.kind === "area") {
    const area = make("textarea", {id, rows: field.json ? "2" : "3", spellcheck: field.json ? "false" : "true"});
    area.value = value;
    return area;
  }
  const input = make("input", {id, type: field.kind, autocomplete: "off"});
  for (const key of ["min", "max"]) if (field[key] !== undefined) input[key] = field[key];
  if (field.kind === "number") input.step = "any";
  input.value = value;
  return input;
}

// Fills the dialog. `changed` is called with the name and the value of what is changed and not wrong.
export function fill(box, settings, changed) {
  box.replaceChildren(...FIELDS.map((field) => {
    const input = control(field, settings[field.name] ?? "");
    const wrong = make("span", {class: "wrong", id: `${input.id}-wrong`, role: "alert"});
    input.setAttribute("aria-describedby", wrong.id);
    input.addEventListener("input", () => {
      wrong.textContent = input.validity.valid ? fault(field, input.value) : input.validationMessage;
      if (!wrong.textContent) changed(field.name, input.value);
    });
    return make("div", {class: `field ${field.kind}`}, make("label", {for: input.id}, field.label), input, wrong);
  }));
}

// The fields of a request.
export function fieldsOf(settings) {
  const body = {};
  for (const field of FIELDS) {
    const value = settings[field.name] ?? "";
    if (field.send && value !== "") body[field.name] = Number(value);
  }
  if (settings.thinking) body.chat_template_kwargs = {enable_thinking: settings.thinking === "on"};
  if (settings.tools?.trim()) body.tools = JSON.parse(settings.tools);
  return {...body, ...(settings.more?.trim() ? JSON.parse(settings.more) : {})};
}
