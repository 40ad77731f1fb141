#!/usr/bin/env python3
"""Writes schema_vectors.tsv: random JSON schemas with documents that they allow or not, by the Python module jsonschema
(pip install jsonschema, 4.26).

  make_schema_vectors.py [COUNT [SEED]] > schema_vectors.tsv      COUNT schemas
  make_schema_vectors.py --check WALKS                            that all documents of a file meet their schemas
  make_schema_vectors.py --shapes COUNT SEED > shapes             schemas alone, of the kinds that people write
  make_schema_vectors.py --judge WALKS > schema_shapes.tsv        their walks, and what is near them, as yes and no

Lines:  schema JSON     the schema of the lines that follow
        yes TEXT        a document that meets it, with keys in the schema's order and nothing that it leaves open
        no TEXT         one that does not meet it
        meets TEXT      (in WALKS) one that its grammar allows: the test writes such a file to GRETA_SCHEMA_WALKS
"""
import json
import random
import re
import sys

from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker, validators

WORDS = ["a", "bc", "d\u00e9", "x y", "\"q\\", "name", "k1", ""]
BIG = 2 ** 63


# People still write dependencies.
Newest = validators.extend(Draft202012Validator, {"dependencies": Draft7Validator.VALIDATORS["dependencies"]})
FORMATS = ["date", "email", "ipv4", "ipv6", "uuid"]  # those that jsonschema knows without other modules


def validator(schema):
    old = any(isinstance(node.get("items"), list) for node in nodes(schema))
    return (Draft7Validator if old else Newest)(schema, format_checker=FormatChecker(FORMATS))


def nodes(value):
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


class Maker:
    """A schema for a value, and values for a schema."""

    def __init__(self, draw):
        self.draw = draw
        self.old = False  # draft 7, whose tuples are lists of items

    def integer_bounds(self):
        draw, schema = self.draw, {}
        span = draw.choice([3, 20, 1000, 10 ** 9, 10 ** 15, BIG - 1])
        low = draw.randint(-span, span)
        high = min(BIG - 1, low + draw.randint(2, span))
        if draw.random() < 0.8:
            schema[draw.choice(["minimum", "exclusiveMinimum"])] = low
        if draw.random() < 0.8:
            schema[draw.choice(["maximum", "exclusiveMaximum"])] = high
        return schema

    def scalar(self):
        draw = self.draw
        kind = draw.randrange(8)
        if kind == 0:
            return {"type": draw.choice(["boolean", "null"])}
        if kind == 1:
            return {"enum": draw.sample([1, -2, "a", "b\"", None, True, 2.5, [1, "x"], {"k": 1}], draw.randint(1, 4))}
        if kind == 2:
            return {"const": draw.choice([0, "c", None, False, [], {"a": []}])}
        if kind == 3:
            least = draw.randint(0, 3)
            return {"type": "string", "minLength": least, "maxLength": least + draw.randint(0, 3)}
        if kind == 4:
            return {"type": draw.choice(["integer", "number"]), **self.integer_bounds()}
        if kind == 5:
            return {"type": draw.sample(["integer", "string", "null", "boolean"], 2)}
        if kind == 6:
            return {"type": "integer", "anyOf": [self.integer_bounds() or {"minimum": 5}, {"maximum": 0}]}
        return {"type": draw.choice(["string", "number", "integer"])}

    def array(self, depth):
        draw, schema = self.draw, {"type": "array"}
        kind = draw.choice([0, 2 if self.old else 1, 3])
        if kind == 0:
            return {**schema, "items": {"enum": draw.sample(["a", "b", 1, 2, None], draw.randint(2, 5))},
                    "uniqueItems": True, "minItems": draw.randint(0, 2), "maxItems": draw.randint(2, 5)}
        parts = [self.schema(depth + 1) for _ in range(draw.randint(1, 3))]
        if kind == 1:
            schema["prefixItems"] = parts
            schema["items"] = draw.choice([False, self.schema(depth + 1)])
        elif kind == 2:
            schema["items"] = parts
            schema["additionalItems"] = draw.choice([False, self.schema(depth + 1)])
        else:
            schema["items"] = parts[0]
        if draw.random() < 0.5:
            schema["maxItems"] = draw.randint(1, 4)
        if draw.random() < 0.5:
            closed = kind == 1 and schema["items"] is False or kind == 2 and schema["additionalItems"] is False
            top = min([len(parts)] * closed + [schema.get("maxItems", 4)])
            schema["minItems"] = draw.randint(0, top)
        return schema

    def object(self, depth):
        draw = self.draw
        names = draw.sample(WORDS, draw.randint(0, 4))
        schema = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        schema["required"] = [name for name in names if draw.random() < 0.4]
        schema["additionalProperties"] = draw.choice([False, False, self.schema(depth + 1)])
        kind = draw.randrange(5)
        if kind == 0 and len(names) > 1:
            schema["anyOf"] = [{"required": [name]} for name in names[:2]]
        elif kind == 1 and names:
            part = {"type": "object", "required": [names[0]], "properties": {names[0]: schema["properties"][names[0]]}}
            return {"allOf": [schema, part]}
        elif kind == 2:
            del schema["additionalProperties"]
        return schema

    def schema(self, depth=0):
        if depth > 2 or self.draw.random() < 0.4:
            return self.scalar()
        kind = self.draw.randrange(6)
        if kind == 0:
            return {"anyOf": [self.schema(depth + 1) for _ in range(self.draw.randint(1, 3))]}
        return self.array(depth) if kind < 3 else self.object(depth)

    # ---- values: what fits a part of the schema; whether it meets all of it is for jsonschema to say ----

    def of_integer(self, schema):
        draw = self.draw
        low = schema.get("minimum", schema.get("exclusiveMinimum", -999) + ("exclusiveMinimum" in schema))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 999) - ("exclusiveMaximum" in schema))
        return draw.choice([low, high, low - 1, high + 1, (low + high) // 2, 0])

    def of_type(self, kind, schema, depth):
        draw = self.draw
        if kind == "boolean":
            return draw.random() < 0.5
        if kind == "null":
            return None
        if kind == "integer":
            return self.of_integer(schema)
        if kind == "number":
            whole = self.of_integer(schema)
            return whole + 0.5 if draw.random() < 0.3 and abs(whole) < 10 ** 6 else whole
        if kind == "string":
            length = draw.choice([schema.get("minLength", 0), schema.get("maxLength", 3), 1, 7])
            return "".join(draw.choice("ab\u00e9\"\\\n\U0001f642") for _ in range(length))
        if kind == "array":
            first = schema.get("prefixItems") or (schema["items"] if isinstance(schema.get("items"), list) else [])
            rest = schema.get("additionalItems") if isinstance(schema.get("items"), list) else schema.get("items", True)
            count = draw.choice([schema.get("minItems", 0), schema.get("maxItems", 2), len(first), 1, 2])
            values = [self.value(each, depth + 1) for each in first[:count]]
            if rest is not False and rest is not None:
                values += [self.value(rest, depth + 1) for _ in range(count - len(values))]
            if schema.get("uniqueItems") and draw.random() < 0.7:
                values = [v for i, v in enumerate(values) if v not in values[:i]]
            return values
        values = {}
        for name, each in schema.get("properties", {}).items():
            if name in schema.get("required", []) or draw.random() < 0.6:
                values[name] = self.value(each, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            for name in draw.sample(["zz", "m", "na"], draw.randint(0, 2)):
                values[name] = self.value(more, depth + 1)
        return values

    def value(self, schema, depth=0):
        draw = self.draw
        if schema is True or not schema:
            return draw.choice([1, "x", None])
        if "allOf" in schema:
            return self.value(schema["allOf"][0], depth)
        if "enum" in schema:
            return draw.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        if "anyOf" in schema:
            part = draw.choice(schema["anyOf"])
            if "type" not in schema:
                return self.value(part, depth)
            schema = {**schema, **part} if schema["type"] == "integer" else schema
        kind = schema["type"]
        return self.of_type(draw.choice(kind) if isinstance(kind, list) else kind, schema, depth)


def closed(schema):
    """The schema without what grammars leave out: other properties than those that it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return schema
    copy = {key: closed(value) for key, value in schema.items()}
    if "properties" in schema:
        copy["properties"] = {name: closed(value) for name, value in schema["properties"].items()}
        copy.setdefault("additionalProperties", False)
    if "allOf" in schema:  # the second one repeats a property of the first
        copy["allOf"] = [closed(schema["allOf"][0]), schema["allOf"][1]]
    return copy


def spoiled(draw, value):
    """Something near it."""
    other = json.loads(json.dumps(value))
    spots = [node for node in nodes({"": other}) if node]
    lists = [v for node in spots for v in node.values() if isinstance(v, list)]
    kind = draw.randrange(4)
    if kind == 0 and lists:
        draw.choice(lists).append(draw.choice([0, "zz", None]))
    elif kind == 1 and len(spots) > 1:
        node = draw.choice(spots[1:])
        node.pop(draw.choice(list(node)))
    elif kind == 2 and isinstance(other, (int, float)):
        other = draw.choice([str(other), other + 0.25, None])
    elif isinstance(other, dict):
        other["extra"] = 1
    else:
        other = draw.choice([[other], {"v": other}, None, 1.5, "zzzzzzzz"])
    return other


def text_of(draw, value, schema):
    """Values of enum and const have one spelling, with a space after each comma and colon; all else has several."""
    fixed = any(word in node for node in nodes(schema) for word in ("enum", "const"))
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if fixed else draw.choice([(",", ":"), (", ", ": ")]))


def make(count, seed):
    draw = random.Random(seed)
    maker = Maker(draw)
    made = 0
    while made < count:
        maker.old = draw.random() < 0.4
        schema = maker.schema()
        check, narrow = validator(schema), validator(closed(schema))
        yes, no = [], []
        for _ in range(40):
            try:
                value = maker.value(schema)
            except (ValueError, KeyError, TypeError):
                continue
            for each, known in ((value, True), (spoiled(draw, value), False)):
                valid, text = check.is_valid(each), text_of(draw, each, schema)
                if valid and known and narrow.is_valid(each) and text not in yes:
                    yes.append(text)
                elif not valid and text not in no:
                    no.append(text)
        if not yes:
            continue
        made += 1
        print("schema", json.dumps(schema), sep="\t")
        for mark, texts in (("yes", yes), ("no", no)):
            for text in draw.sample(texts, min(len(texts), 5)):
                print(mark, text, sep="\t")


class Shapes:
    """Schemas of the kinds that people write: notes, formats, patterns with lengths, bounds with fractions, names and
    numbers of properties, dependencies, exclusive alternatives. Python's \\w and \\d know more than ASCII, and its floats
    no multiple of 0.1, so that neither is here."""
    NAMES = ["a", "bc", "x-y", "name", "Due Date", "\u00e9", "k1", "_id"]
    PATTERNS = ["^[a-z]+$", "^x-", "[0-9]{2}", "b+", "^(foo|bar)", "[A-Z]$", "^[A-Za-z_][A-Za-z0-9_]*$", ".", "^.{2,5}$",
                "^#([0-9a-f]{3}|[0-9a-f]{6})$", "^[0-9]{4}-[0-9]{2}$", "^[^/]+/[^/]+$", "^$|^x", "a|b", "^v?[0-9]+[.][0-9]+$"]
    NOTES = [("title", "t"), ("x-order", ["a"]), ("readonly", True), ("links", [{"rel": "self", "href": "{id}"}]),
             ("version", 1), ("javaType", "x.Y"), ("discriminator", {"propertyName": "k"}), ("nullable", True),
             ("contentEncoding", "base64"), ("self", {}), ("default", 1), ("id", "http://x/y"), ("enumNames", ["x"])]

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def text(self):
        draw, schema = self.draw, {"type": "string"}
        kind = draw.randrange(6)
        if kind < 3:
            schema["pattern"] = draw.choice(self.PATTERNS)
        elif kind == 3:
            return {**schema, "format": draw.choice(FORMATS)}
        if draw.random() < 0.5:
            schema["minLength"] = draw.randint(0, 5)
        if draw.random() < 0.5:
            schema["maxLength"] = schema.get("minLength", 0) + draw.choice([7, 30, 10001, 65536])
        return schema

    def number(self):
        draw, schema = self.draw, {"type": self.draw.choice(["number", "integer"])}
        low = draw.choice([draw.randint(-50, 50), round(draw.uniform(-50, 50), draw.randint(1, 3)), 0.5, -0.25, 1e2])
        if draw.random() < 0.7:
            schema[draw.choice(["minimum", "exclusiveMinimum"])] = low
        if draw.random() < 0.7:
            schema[draw.choice(["maximum", "exclusiveMaximum"])] = low + draw.choice([2, 7.5, 1000])
        if draw.random() < 0.3:
            schema["multipleOf"] = draw.choice([1, 2, 0.5, 0.25, 1.0])
        return schema

    def object(self, depth):
        draw = self.draw
        names = draw.sample(self.NAMES, draw.randint(1, 4))
        schema = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        kind = draw.randrange(9)
        if draw.random() < 0.5 and kind != 3:
            schema["required"] = draw.sample(names, draw.randint(1, len(names)))
        if kind == 0:
            schema["additionalProperties"] = draw.choice([False, True, self.schema(depth + 1)])
        elif kind == 1:
            schema["patternProperties"] = {draw.choice(self.PATTERNS): {"type": draw.choice(["null", "integer"])}}
            schema.pop("required", None)
        elif kind == 2:
            schema["minProperties"] = draw.randint(1, len(names) + 1)
        elif kind == 3:
            schema["propertyNames"] = draw.choice([{"pattern": "^[a-z]"}, {"maxLength": 4}, {"enum": names[:1] + ["q"]}])
        elif kind == 4:
            schema["maxProperties"] = draw.randint(max(1, len(schema.get("required", []))), 4)
        elif kind == 5 and len(names) > 1:
            schema["dependencies"] = {names[0]: draw.choice([[names[1]], {"required": [names[1]]}])}
        elif kind == 6:
            schema["allOf"] = [{"properties": {"w": self.schema(depth + 1)}}, {"properties": {"v": {}}, "required": ["v"]}]
            schema["unevaluatedProperties"] = False
        elif kind > 6:
            schema[draw.choice(["anyOf", "oneOf"])] = [{"required": names[:1]},
                                                      {"properties": {"zz": {"const": 1}}, "required": ["zz"]}]
        return schema

    def schema(self, depth=0):
        draw = self.draw
        kind = draw.randrange(9 if depth < 2 else 4)
        if kind < 2:
            made = self.text() if kind == 0 else self.number()
        elif kind < 4:
            made = draw.choice([{"type": "boolean"}, {"enum": ["a", 1, None]}, {"type": ["integer", "null"]},
                                {"type": "object", "properties": {"next": {"$ref": "#q"}}}])
        elif kind < 7:
            made = self.object(depth)
        elif kind == 7:
            made = {"type": "array", "items": self.schema(depth + 1), "minItems": draw.randint(0, 2)}
        else:
            made = {draw.choice(["anyOf", "oneOf"]): [self.text(), self.number(), {"type": "null"}]}
        if depth == 0:
            made["$defs"] = {"q": {"$anchor": "q", "type": "object", "properties": {"next": {"$ref": "#q"}}}}
        return {**made, **dict(draw.sample(self.NOTES, draw.choice([0, 0, 2])))}


def judge(path):
    draw, lines = random.Random(1), []
    for line in open(path, encoding="utf-8"):
        mark, text = line.rstrip("\n").split("\t", 1)
        if mark == "schema":
            schema = json.loads(text)
            current, counts = validator(schema), {"yes": 0, "no": 0}
            lines.append((mark, text))
            continue
        value = json.loads(text)
        # White space is short in grammars, and line ends are none here.
        text = re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda m: m[1] or "", text)
        if not current.is_valid(value):
            sys.exit(f"does not meet\t{json.dumps(schema)}\t{text}")
        for each in (value, spoiled(draw, value)):
            mark = "yes" if current.is_valid(each) else "no"
            spelt = text if each is value else json.dumps(each, ensure_ascii=False)
            if (each is value or mark == "no") and counts[mark] < 3 and len(spelt) < 120:
                counts[mark] += 1
                lines.append((mark, spelt))
    for line in lines:
        print(*line, sep="\t")


def check(path):
    current, seen, wrong = None, 0, 0
    for line in open(path, encoding="utf-8"):
        mark, text = line.rstrip("\n").split("\t", 1)
        if mark == "schema":
            schema = json.loads(text)
            current = validator(schema)
        elif mark == "meets":
            seen += 1
            if not current.is_valid(json.loads(text)):
                wrong += 1
                print("does not meet", json.dumps(schema), text, sep="\t")
    print(f"{seen} documents, {wrong} of them wrong")
    return wrong == 0 and seen > 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(not check(sys.argv[2]))
    if sys.argv[1:2] == ["--judge"]:
        sys.exit(judge(sys.argv[2]))
    if sys.argv[1:2] == ["--shapes"]:
        shapes = Shapes(int(sys.argv[3]))
        for _ in range(int(sys.argv[2])):
            print("schema", json.dumps(shapes.schema()), sep="\t")
        sys.exit()
    numbers = [int(arg) for arg in sys.argv[1:]]
    make(*(numbers + [250, 1][len(numbers):]))
