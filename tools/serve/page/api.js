// The calls that the page makes, all to the server it came from.

export class Problem extends Error {
  constructor(status, message, details = {}) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

async function call(path, key, options = {}) {
  const headers = {...(key ? {Authorization: `Bearer ${key}`} : {}), ...(options.body ? {"Content-Type": "application/json"} : {})};
  let answer;
  try {
    answer = await fetch(new URL(path, document.baseURI), {...options, headers, cache: "no-store", credentials: "omit", redirect: "error"});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "the server cannot be reached");
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => null);
  throw new Problem(answer.status, body?.error?.message ?? `the server answers ${answer.status}`, body?.error ?? {});
}

export const health = async () => (await call("health")).json();
export const models = async (key) => (await (await call("v1/models", key)).json()).data;

// The objects of a stream, as they come.
export async function* chat(body, key, signal) {
  const answer = await call("v1/chat/completions", key, {method: "POST", body: JSON.stringify(body), signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) throw new Problem(0, "the server has closed the stream before its end");
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Problem(chunk.error.code ?? 500, chunk.error.message, chunk.error);
      yield chunk;
    }
  }
}
