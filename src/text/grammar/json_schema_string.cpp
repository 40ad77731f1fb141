// What schemas say of strings, and of names of properties: patterns, formats and lengths.
#include <algorithm>

#include "text/grammar/json_schema.h"
#include "text/grammar/json_schema_parts.h"
#include "text/unicode/unicode.h"

namespace greta {

using jinja::Value;

namespace {

// Formats as regular expressions. A pattern may allow less than the format does, and never more.
struct Format {
  std::string_view name;
  const char* pattern;
};
#define DAY                                                                                                  \
  "[0-9]{3}[1-9]-(02-(0[1-9]|1[0-9]|2[0-8])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|(0[13578]|1[02])-(0[1-9]|[12]" \
  "[0-9]|3[01]))"
#define CLOCK "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-2]):[0-5][0-9])"
#define HOST \
  "[A-Za-z0-9]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?){0,4}"
#define SEGMENT "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
#define REST                                                                              \
  "(\\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?(#([A-Za-z0-9._~!$&'()*+,;=:@/" \
  "?-]|%[0-9A-Fa-f]{2})*)?"
#define URI                                                                                            \
  "[A-Za-z][A-Za-z0-9+.-]{0,15}:(//" HOST "(:[1-9][0-9]{0,3})?(/" SEGMENT "*)*|" SEGMENT "+(/" SEGMENT \
  "*)*)" REST
#define REFERENCE "(" URI "|/(" SEGMENT "+(/" SEGMENT "*)*)?" REST ")"
constexpr Format kFormats[] = {
    {"date", DAY},
    {"time", CLOCK},
    {"date-time", DAY "T" CLOCK},
    {"duration",
     "P([0-9]{1,5}W|([0-9]{1,5}D|[0-9]{1,5}M([0-9]{1,5}D)?|[0-9]{1,5}Y([0-9]{1,5}M([0-9]{1,5}D)?)?)"
     "(T[0-9]{1,5}[HMS])?|T([0-9]{1,5}H([0-9]{1,5}M([0-9]{1,5}S)?)?|[0-9]{1,5}M([0-9]{1,5}S)?|"
     "[0-9]{1,5}S))"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"email", "[A-Za-z0-9_]+([.+-][A-Za-z0-9_]+)*@" HOST},
    {"idn-email", "[A-Za-z0-9_]+([.+-][A-Za-z0-9_]+)*@" HOST},
    {"hostname", HOST},
    {"host-name", HOST},
    {"idn-hostname", HOST},
    {"ipv4",
     "((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"},
    {"ip-address",
     "((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"},
    {"ipv6",
     "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,6}:([0-9a-fA-F]{1,4})?|::([0-9a-fA-F]{1,4}"
     ")?"},
    {"uri", URI},
    {"url", URI},
    {"iri", URI},
    {"uri-reference", REFERENCE},
    {"uriref", REFERENCE},
    {"iri-reference", REFERENCE},
    {"json-pointer", "(/([^/~]|~[01])*)*"},
    {"byte", "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"},
};
#undef DAY
#undef CLOCK
#undef HOST
#undef SEGMENT
#undef REST
#undef URI
#undef REFERENCE

// Formats that leave a text as it is, or say what a number is stored in.
constexpr std::string_view kOpenFormats[] = {"password", "binary", "float",    "double", "decimal", "int64",
                                             "number",   "string", "textarea", "text",   "integer"};

struct WholeFormat {
  std::string_view name;
  int64_t least, most;
};
constexpr WholeFormat kWholeFormats[] = {{"int8", -128, 127},
                                         {"uint8", 0, 255},
                                         {"int16", -32768, 32767},
                                         {"uint16", 0, 65535},
                                         {"int32", -2147483648, 2147483647},
                                         {"uint32", 0, 4294967295},
                                         {"uint64", 0, INT64_MAX}};

// Narrows *out to the texts of a set; *any tells that all texts were allowed.
Status narrow(const TextSet& to, bool* any, TextSet* out) {
  if (*any) return *any = false, *out = to, Status{};
  const TextSet before = *out;
  return before.intersect(to, out);
}

}  // namespace

uint32_t json_length(const Value& schema, const char* word, uint32_t otherwise) {
  const Value* value = schema.find(word);
  return value ? uint32_t(std::min(value->as_double(), double(kMaxGrammarRepeats))) : otherwise;
}

Value json_format_bounds(std::string_view format) {
  for (const WholeFormat& each : kWholeFormats)
    if (each.name == format) {
      Value bounds = Value::dict();
      bounds.set("minimum", each.least);
      bounds.set("maximum", each.most);
      return bounds;
    }
  return {};
}

Status json_texts(const Value& schema, SchemaReading* reading, bool* any, TextSet* out) {
  *any = true;
  if (const Value* pattern = schema.find("pattern")) {
    TextSet set;
    const Status read = TextSet::matching(pattern->as_string(), &set);
    if (read.ok())
      GRETA_TRY(narrow(set, any, out));
    else if (read.code != Code::Unsupported || reading->strict)
      return read;
    else
      GRETA_TRY(reading->miss("pattern", pattern->as_string()));
  }
  if (const Value* format = schema.find("format")) {
    const std::string_view name = format->as_string();
    const auto* known = std::ranges::find(kFormats, name, &Format::name);
    if (known != std::end(kFormats)) {
      TextSet set;
      GRETA_TRY(TextSet::matching("^(?:" + std::string(known->pattern) + ")$", &set));
      GRETA_TRY(narrow(set, any, out));
    } else if (std::ranges::find(kOpenFormats, name) == std::end(kOpenFormats) &&
               json_format_bounds(name).is_undefined()) {
      GRETA_TRY(reading->miss("format", name));
    }
  }
  if (*any) return {};
  const uint32_t least = json_length(schema, "minLength", 0);
  const uint32_t most = json_length(schema, "maxLength", TextSet::kNoLimit);
  if (least > 0 || most != TextSet::kNoLimit) {
    const TextSet before = *out;
    const Status limited = before.limit(least, most, out);
    if (limited.code == Code::Unsupported && !reading->strict)
      GRETA_TRY(reading->miss("minLength", "beside a pattern or format of so many states"));
    else
      GRETA_TRY(limited);
  }
  if (!out->empty()) return {};
  return reading->nothing(fail(Code::Argument, "JSON schema: no text meets its pattern, format and lengths"));
}

// ---- what is told of a schema -------------------------------------------------------------------

Status SchemaReading::miss(std::string_view word, std::string_view reason) {
  if (strict)
    return fail(Code::Unsupported, "JSON schema: %s is not supported: %s", Quoted(word).c_str(),
                Quoted(reason.substr(0, 80)).c_str());
  if (missed.size() < 20)
    missed.insert(std::string(word) + " (" + Quoted(reason.substr(0, 80)).c_str() + ")");
  return {};
}

std::string SchemaReading::note() const {
  const auto list = [](const std::set<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
    return all;
  };
  std::string out;
  if (!missed.empty()) out = "answers are not held to " + list(missed);
  if (!unknown.empty())
    out += (out.empty() ? "" : "; ") + list(unknown) + " say nothing about what an answer may be";
  return out;
}

}  // namespace greta
