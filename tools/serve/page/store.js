// What this browser keeps: conversations in IndexedDB, settings in localStorage. Without either they last as long as the page.

let database = null;
const memory = new Map();

function finished(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

const opening = (async () => {
  try {
    const request = indexedDB.open("greta", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("conversations", {keyPath: "id"});
    database = await finished(request);
  } catch {
    database = null;
  }
  return database !== null;
})();

// Says whether conversations are kept.
export const kept = () => opening;

const store = (mode) => database.transaction("conversations", mode).objectStore("conversations");

export async function all() {
  await opening;
  const found = database ? await finished(store("readonly").getAll()) : [...memory.values()];
  return found.sort((a, b) => b.changed - a.changed);
}

export async function put(conversation) {
  await opening;
  if (database) await finished(store("readwrite").put(structuredClone(conversation)));
  else memory.set(conversation.id, conversation);
}

export async function drop(id) {
  await opening;
  if (database) await finished(store("readwrite").delete(id));
  else memory.delete(id);
}

export function readSettings() {
  try {
    return JSON.parse(localStorage.getItem("greta-settings")) ?? {};
  } catch {
    return {};
  }
}

export function writeSettings(settings) {
  try {
    localStorage.setItem("greta-settings", JSON.stringify(settings));
  } catch {
    // They last as long as the page.
  }
}
