// A conversation is a tree of messages, of which one path is shown. An edit or a further answer is a branch.

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newConversation() {
  return {id: newId(), title: "", created: Date.now(), changed: Date.now(), nodes: {}, leaf: null};
}

// Adds a message below `parent` and makes it the end of the path.
export function add(conversation, parent, message) {
  const node = {id: newId(), parent, time: Date.now(), ...message};
  conversation.nodes[node.id] = node;
  conversation.leaf = node.id;
  conversation.changed = Date.now();
  if (!conversation.title && node.role === "user") conversation.title = node.content.trim().replace(/\s+/g, " ").slice(0, 60);
  return node;
}

export function pathOf(conversation) {
  const path = [];
  for (let node = conversation.nodes[conversation.leaf]; node; node = conversation.nodes[node.parent]) path.unshift(node);
  return path;
}

export function childrenOf(conversation, parent) {
  return Object.values(conversation.nodes).filter((node) => node.parent === parent).sort((a, b) => a.time - b.time);
}

// Shows the path through a node, and below it through what came last.
export function choose(conversation, id) {
  let node = conversation.nodes[id];
  for (let below; (below = childrenOf(conversation, node.id)).length > 0;) node = below.at(-1);
  conversation.leaf = node.id;
}

export function remove(conversation, id) {
  const {parent} = conversation.nodes[id];
  const below = [id];
  for (const each of below) below.push(...childrenOf(conversation, each).map((node) => node.id));
  for (const each of below) delete conversation.nodes[each];
  const others = childrenOf(conversation, parent);
  if (others.length > 0) choose(conversation, others.at(-1).id);
  else conversation.leaf = parent;
}

// The path as messages of OpenAI's API.
export function messagesOf(path, system) {
  const messages = system.trim() ? [{role: "system", content: system}] : [];
  for (const node of path) {
    const message = {role: node.role, content: node.content};
    if (node.role === "tool") message.tool_call_id = node.callId;
    if (node.reasoning) message.reasoning_content = node.reasoning;
    if (node.calls?.length) {
      message.tool_calls = node.calls.map((call) => ({
        id: call.id, type: "function", function: {name: call.name, arguments: call.arguments},
      }));
    }
    messages.push(message);
  }
  return messages;
}

// ---- files ----

const FORMAT = "greta-conversations";

export function exported(conversations) {
  return JSON.stringify({format: FORMAT, version: 1, conversations}, null, 1);
}

const text = (value) => (typeof value === "string" ? value : "");
const number = (value) => (Number.isFinite(value) ? value : 0);

function readCall(call) {
  return {id: text(call?.id), name: text(call?.name), arguments: text(call?.arguments)};
}

function readNode(id, given) {
  if (!["user", "assistant", "tool"].includes(given?.role)) throw new Error(`a message has the role ${JSON.stringify(given?.role)}`);
  const node = {id, parent: typeof given.parent === "string" ? given.parent : null, time: number(given.time), role: given.role, content: text(given.content)};
  for (const key of ["reasoning", "callId", "model", "error", "finish"]) if (given[key]) node[key] = text(given[key]);
  if (given.stopped === true) node.stopped = true;
  if (Array.isArray(given.calls)) node.calls = given.calls.map(readCall);
  if (given.counts && typeof given.counts === "object") {
    node.counts = Object.fromEntries(Object.entries(given.counts).map(([key, value]) => [key, number(value)]));
  }
  return node;
}

// Reads what a file has, and takes nothing from it but what is known. Throws in words.
export function imported(json) {
  const file = JSON.parse(json);
  if (file?.format !== FORMAT || !Array.isArray(file.conversations)) throw new Error("the file has no conversations of this page");
  return file.conversations.map((given) => {
    const conversation = {...newConversation(), title: text(given?.title).slice(0, 200), created: number(given?.created), changed: number(given?.changed)};
    const nodes = given?.nodes && typeof given.nodes === "object" ? given.nodes : {};
    for (const [id, node] of Object.entries(nodes)) {
      if (!/^[0-9a-f]{1,64}$/.test(id)) throw new Error("a message has no proper id");
      conversation.nodes[id] = readNode(id, node);
    }
    for (const node of Object.values(conversation.nodes)) {
      const seen = new Set();
      for (let each = node; each; each = conversation.nodes[each.parent]) {
        if (seen.has(each.id)) throw new Error("messages of a conversation are their own answers");
        seen.add(each.id);
      }
      if (node.parent !== null && !conversation.nodes[node.parent]) node.parent = null;
    }
    const roots = childrenOf(conversation, null);
    if (/^[0-9a-f]+$/.test(given?.leaf) && conversation.nodes[given.leaf]) conversation.leaf = given.leaf;
    else if (roots.length > 0) choose(conversation, roots.at(-1).id);
    return conversation;
  });
}
