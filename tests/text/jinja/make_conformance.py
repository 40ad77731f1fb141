"""Writes conformance.json: small templates with what Python's jinja2 makes of them.

    make_conformance.py > conformance.json        (needs jinja2 3.1; the tests need no Python)

The environment is the one in which transformers renders chat templates. Expressions stand in
expressions.jinja, one in a line, and are printed; templates stand as they are in cases.py. What jinja2
refuses is kept as {"error": true}; its words are not compared.
"""
import datetime
import json
import os
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cases import CONTEXT, TEMPLATES

NOW = 1721952000 + 3 * 3600 + 4 * 60 + 5  # 26 July 2024, 03:04:05


class Generation(jinja2.ext.Extension):
    """{% generation %}: a call block around the assistant's words, as in transformers."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("write")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def write(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(
        tzinfo=None).strftime
    return env


def outcome(env, template, context):
    try:
        return {"ok": env.from_string(template).render(**json.loads(json.dumps(context)))}
    except Exception:  # whatever it is, the template is refused
        return {"error": True}


def main():
    env = environment()
    cases = []
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "expressions.jinja"), encoding="utf-8") as file:
        expressions = file.read().splitlines()
    for template in ["{{ " + e + " }}" for e in expressions] + TEMPLATES:
        case = {"template": template, **outcome(env, template, CONTEXT)}
        if " at 0x" not in case.get("ok", ""):  # an address is no expectation
            cases.append(case)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    print('{"now": %d, "context": %s,\n"cases": [\n%s\n]}' % (NOW, json.dumps(CONTEXT, ensure_ascii=False), lines))
    refused = sum("error" in case for case in cases)
    print(f"{len(cases)} cases, {refused} of them refused", file=sys.stderr)


main()
