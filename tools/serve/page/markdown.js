// Markdown as DOM nodes. All text becomes text nodes, so that nothing a model writes is read as HTML.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const COLUMNS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}_]/u;
const DEEPEST = 12;            // quotes in lists in quotes
const LONGEST_INLINE = 20000;  // characters of a paragraph in which marks are looked for

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") element.toggleAttribute(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// ---- blocks ----

const isTable = (lines, at) => lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && COLUMNS.test(lines[at + 1]) &&
  cells(lines[at]).length === cells(lines[at + 1]).length;

const begins = (lines, at) =>
  [FENCE, HEADING, RULE, ITEM, QUOTE].some((form) => form.test(lines[at])) || isTable(lines, at);

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

const spacesOf = (line) => line.length - line.trimStart().length;

function readCode(lines, at, found) {
  const close = new RegExp(`^ {0,3}${found[1][0]}{${found[1].length},}\\s*$`);
  const start = at + 1;
  let end = start;
  while (end < lines.length && !close.test(lines[end])) end++;
  return [{kind: "code", language: found[2].trim().split(/\s/)[0], text: lines.slice(start, end).join("\n")}, Math.min(end + 1, lines.length)];
}

function readQuote(lines, at) {
  const inner = [];
  for (; at < lines.length && lines[at].trim(); at++) {
    if (!QUOTE.test(lines[at]) && begins(lines, at)) break;
    inner.push(lines[at].replace(QUOTE, ""));
  }
  return [{kind: "quote", lines: inner}, at];
}

// The items of a list: what is indented belongs to the one above.
function readList(lines, at) {
  const ordered = (line) => /\d/.test(ITEM.exec(line)[2]);
  const block = {kind: "list", ordered: ordered(lines[at]), start: parseInt(ITEM.exec(lines[at])[2], 10) || 0, items: []};
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (!found || RULE.test(lines[at]) || ordered(lines[at]) !== block.ordered) break;
    const indent = found[1].length + found[2].length + Math.min(found[3].length || 1, 4);
    const item = [found[4]];
    for (at++; at < lines.length; at++) {
      const line = lines[at];
      if (!line.trim()) {
        const next = lines.findIndex((each, i) => i > at && each.trim());
        if (next < 0 || spacesOf(lines[next]) < 2) break;
        item.push("");
      } else if (spacesOf(line) >= Math.min(indent, 2)) {
        item.push(line.slice(Math.min(indent, spacesOf(line))));
      } else if (begins(lines, at) || !item.at(-1).trim()) {
        break;
      } else {
        item.push(line);
      }
    }
    block.items.push(item);
    let next = at;
    while (next < lines.length && !lines[next].trim()) next++;
    if (next < lines.length && ITEM.test(lines[next])) at = next;
  }
  return [block, at];
}

function readTable(lines, at) {
  const block = {kind: "table", head: cells(lines[at]), rows: []};
  block.align = cells(lines[at + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left"));
  for (at += 2; at < lines.length && lines[at].includes("|"); at++) block.rows.push(cells(lines[at]));
  return [block, at];
}

function readBlock(lines, at) {
  const line = lines[at];
  let found;
  if ((found = FENCE.exec(line))) return readCode(lines, at, found);
  if ((found = HEADING.exec(line))) return [{kind: "heading", level: found[1].length, text: found[2] ?? ""}, at + 1];
  if (RULE.test(line)) return [{kind: "rule"}, at + 1];
  if (QUOTE.test(line)) return readQuote(lines, at);
  if (ITEM.test(line)) return readList(lines, at);
  if (isTable(lines, at)) return readTable(lines, at);
  const start = at++;
  while (at < lines.length && lines[at].trim() && !begins(lines, at)) at++;
  return [{kind: "text", text: lines.slice(start, at).join("\n")}, at];
}

function blocksOf(lines) {
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at++;
      continue;
    }
    const [block, end] = readBlock(lines, at);
    block.source = lines.slice(at, end).join("\n");
    blocks.push(block);
    at = end;
  }
  return blocks;
}

// ---- text within a block ----

// [label](address), or null. Only addresses of the web and of mail become links; pictures do, too, since none is loaded.
function readLink(text, at) {
  const start = text[at] === "!" ? at + 2 : at + 1;
  let depth = 1, end = start;
  for (; end < text.length && depth > 0; end++) depth += text[end] === "[" ? 1 : text[end] === "]" ? -1 : 0;
  if (depth > 0 || text[end] !== "(") return null;
  let close = end + 1;
  for (depth = 1; close < text.length && depth > 0; close++) depth += text[close] === "(" ? 1 : text[close] === ")" ? -1 : 0;
  if (depth > 0) return null;
  const address = text.slice(end + 1, close - 1).trim().split(/\s/)[0].replace(/^<|>$/g, "");
  return {label: text.slice(start, end - 1), address, end: close};
}

function linkTo(address, children) {
  let url = null;
  try {
    url = new URL(address);
  } catch {
    // It is relative, and so leads nowhere.
  }
  if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) return make("span", {}, ...children, ` (${address})`);
  return make("a", {href: url.href, rel: "noopener noreferrer nofollow", target: "_blank"}, ...children);
}

// Where a mark of emphasis that stands at `at` is closed, or -1.
function closing(text, at, mark) {
  const letter = mark[0];
  const word = (index) => WORD.test(text[index] ?? "");
  if (!(text[at + mark.length] ?? " ").trim() || (letter === "_" && word(at - 1))) return -1;
  for (let k = text.indexOf(mark, at + mark.length + 1); k >= 0; k = text.indexOf(mark, k + 1)) {
    if (!text[k - 1].trim() || (letter === "_" && word(k + mark.length))) continue;
    if (mark.length < 3 && (text[k - 1] === letter || text[k + mark.length] === letter)) {
      while (text[k + 1] === letter) k++;
      continue;
    }
    return k;
  }
  return -1;
}

function emphasis(text, at, depth) {
  const run = /^(\*{1,3}|_{1,3}|~~)/.exec(text.slice(at, at + 3));
  if (!run || depth > DEEPEST) return null;
  const mark = run[1], close = closing(text, at, mark);
  if (close < 0) return null;
  const inner = inline(text.slice(at + mark.length, close), depth + 1);
  const names = mark === "~~" ? ["del"] : [[], ["em"], ["strong"], ["strong", "em"]][mark.length];
  return {node: names.reduceRight((children, name) => [make(name, {}, ...children)], inner)[0], end: close + mark.length};
}

function span(text, at, depth) {
  const letter = text[at];
  if (letter === "`") {
    const mark = /^`+/.exec(text.slice(at))[0];
    const close = text.indexOf(mark, at + mark.length);
    if (close < 0 || text[close + mark.length] === "`") return {node: mark, end: at + mark.length};
    const code = text.slice(at + mark.length, close);
    return {node: make("code", {}, /^ .*[^ ].* $/s.test(code) ? code.slice(1, -1) : code), end: close + mark.length};
  }
  if (letter === "[" || (letter === "!" && text[at + 1] === "[")) {
    const link = readLink(text, at);
    return link && {node: linkTo(link.address, inline(link.label || "image", depth + 1)), end: link.end};
  }
  if (letter === "h" || letter === "<") {
    const found = /^<?(https?:\/\/[^\s<>]*[^\s<>.,;:!?'")\]*_])>?/.exec(text.slice(at, at + 2000));
    if (found && !WORD.test(text[at - 1] ?? "")) return {node: linkTo(found[1], [found[1]]), end: at + found[0].length};
    return null;
  }
  return "*_~".includes(letter) ? emphasis(text, at, depth) : null;
}

function inline(text, depth = 0) {
  if (text.length > LONGEST_INLINE) return [text];
  const nodes = [];
  let plain = "";
  for (let at = 0; at < text.length;) {
    if (text[at] === "\\" && PUNCTUATION.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
      continue;
    }
    const found = text[at] === "\n" ? {node: make("br"), end: at + 1} : "`[!h<*_~".includes(text[at]) ? span(text, at, depth) : null;
    if (!found) {
      plain += text[at++];
      continue;
    }
    if (plain) nodes.push(plain);
    plain = "";
    nodes.push(found.node);
    at = found.end;
  }
  if (plain) nodes.push(plain);
  return nodes;
}

// ---- code ----

const COMMENTS = {
  hash: ["python", "py", "sh", "bash", "shell", "zsh", "yaml", "yml", "toml", "ruby", "rb", "perl", "r", "dockerfile", "makefile", "cmake", "ini"],
  dash: ["sql", "lua", "haskell", "hs"],
  slash: ["c", "cpp", "c++", "cc", "h", "hpp", "cs", "csharp", "java", "js", "javascript", "ts", "typescript", "jsx", "tsx", "go", "rust", "rs",
    "swift", "kotlin", "kt", "scala", "php", "dart", "zig", "glsl", "hip", "cuda", "json", "css"],
};
const COMMENT_FORMS = {hash: "#[^\\n]*", dash: "--[^\\n]*", slash: "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)"};
const KEYWORDS = new Set(("and as async await auto bool break case catch char class const constexpr continue def default defer del do double elif else " +
  "enum except export extends extern false finally float fn for from func function if impl import in include int interface is lambda let " +
  "long match mod mut namespace new nil None not null of or override pass private protected pub public raise return self short " +
  "signed sizeof static string struct super switch template this throw trait true True False try type typedef typename union unsigned use using var " +
  "virtual void volatile while with yield SELECT FROM WHERE INSERT UPDATE DELETE CREATE TABLE JOIN ORDER BY GROUP LIMIT VALUES SET AND OR NOT NULL").split(" "));

function highlighted(text, language) {
  const family = Object.keys(COMMENTS).find((name) => COMMENTS[name].includes(language.toLowerCase()));
  if (!family) return [text];
  const tokens = new RegExp(`(${COMMENT_FORMS[family]})|("(?:\\\\.|[^"\\\\\\n])*"?|'(?:\\\\.|[^'\\\\\\n])*'?|\`(?:\\\\.|[^\`\\\\])*\`?)|` +
    "\\b(\\d[\\w.]*)\\b|([A-Za-z_]\\w*)|[^A-Za-z_\\d\"'`#/-]+|.", "gs");
  const nodes = [];
  for (const [whole, comment, string, number, word] of text.matchAll(tokens)) {
    const kind = comment ? "comment" : string ? "string" : number ? "number" : word && KEYWORDS.has(word) ? "keyword" : "";
    if (kind) nodes.push(make("span", {class: `code-${kind}`}, whole));
    else if (typeof nodes.at(-1) === "string") nodes[nodes.length - 1] += whole;
    else nodes.push(whole);
  }
  return nodes;
}

export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = make("textarea", {class: "hidden"});  // Where the page came over plain HTTP there is no clipboard.
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function codeBlock(block) {
  const button = make("button", {type: "button", class: "small"}, "Copy");
  button.addEventListener("click", async () => {
    await copy(block.text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  const head = make("div", {class: "code-head"}, make("span", {}, block.language || "text"), button);
  return make("div", {class: "code"}, head, make("pre", {tabindex: "0"}, make("code", {}, ...highlighted(block.text, block.language))));
}

// ---- nodes ----

function render(block, depth) {
  const inner = (lines) => (depth > DEEPEST ? [lines.join("\n")] : blocksOf(lines).map((each) => render(each, depth + 1)));
  switch (block.kind) {
    case "code":
      return codeBlock(block);
    case "heading":
      return make(`h${Math.min(block.level + 2, 6)}`, {}, ...inline(block.text));
    case "rule":
      return make("hr");
    case "quote":
      return make("blockquote", {}, ...inner(block.lines));
    case "list": {
      const items = block.items.map((item) => {
        const nodes = inner(item);
        const single = nodes[0] instanceof HTMLParagraphElement;  // a tight list has no paragraphs
        return make("li", {}, ...(single ? [...nodes[0].childNodes, ...nodes.slice(1)] : nodes));
      });
      return make(block.ordered ? "ol" : "ul", block.ordered && block.start > 1 ? {start: String(block.start)} : {}, ...items);
    }
    case "table": {
      const row = (name, texts) => make("tr", {}, ...block.head.map((_, i) => make(name, {class: block.align[i]}, ...inline(texts[i] ?? ""))));
      const table = make("table", {}, make("thead", {}, row("th", block.head)), make("tbody", {}, ...block.rows.map((texts) => row("td", texts))));
      return make("div", {class: "wide", tabindex: "0"}, table);
    }
    default:
      return make("p", {}, ...inline(block.text));
  }
}

const shown = new WeakMap();  // the sources of the blocks that an element has

// Shows a text in an element. Blocks that have not changed keep their nodes, so that a selection survives what is written below it.
export function show(element, text) {
  const blocks = blocksOf(text.replace(/\r\n?/g, "\n").split("\n"));
  const before = shown.get(element) ?? [];
  let same = 0;
  while (same < blocks.length && same < before.length && blocks[same].source === before[same]) same++;
  while (element.childNodes.length > same) element.lastChild.remove();
  for (const block of blocks.slice(same)) element.append(render(block, 0));
  shown.set(element, blocks.map((block) => block.source));
}
