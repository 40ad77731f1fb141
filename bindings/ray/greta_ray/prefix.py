"""Which replica a request goes to: the one that ranks first for how its prompt begins.

Each pair of a beginning and a replica has a number that everybody computes alike (rendezvous hashing). So all routers send a beginning to the
same replica without asking each other, its pages are in that one's prefix cache, and when a replica leaves, only what it had goes elsewhere.
"""
import hashlib
import json

LENGTH = 2000  # letters of a conversation that count as its beginning: its system message and the first one of the user
PAGE = 256  # and of a plain text, which may go on: those of a page of the cache, below which nothing is shared


def prefix_of(body):
    """How the prompt of a request's body begins, of any API; "" where it cannot be told."""
    try:
        asked = json.loads(body) if isinstance(body, (bytes, str)) else body
    except ValueError:
        return ""
    if not isinstance(asked, dict):
        return ""
    parts = [asked.get(name) for name in ("cache_salt", "system", "instructions")]
    messages = asked.get("messages", asked.get("input", asked.get("prompt", asked.get("content"))))
    if isinstance(messages, list) and all(isinstance(each, int) for each in messages):  # tokens
        parts.append(messages[:PAGE // 4])
    elif isinstance(messages, list):  # up to the first message of the user, which the conversation keeps
        for message in messages:
            parts.append(message)
            if isinstance(message, dict) and message.get("role") == "user":
                break
    else:
        parts.append(messages[:PAGE] if isinstance(messages, str) else messages)
    text = "".join(each if isinstance(each, str) else json.dumps(each, sort_keys=True) for each in parts if each is not None)
    return text[:LENGTH]


def rank(prefix, names):
    """The names of replicas, the one that the prefix belongs to first."""
    def weight(name):
        return hashlib.blake2b(f"{name}\0{prefix}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return sorted(names, key=weight, reverse=True)
