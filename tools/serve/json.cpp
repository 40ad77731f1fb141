#include "json.h"

#include <cmath>
#include <cstdio>
#include <set>

namespace greta::serve {
namespace {

constexpr size_t kDepth = 256, kValues = 1'000'000, kKeys = 4096;

// Counts what is read, and finds keys that are there twice. Its exceptions end the reading.
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (static_cast<size_t>(depth) > kDepth) throw Refused(400, "the JSON is nested deeper than 256");
    if (++values_ > kValues) throw Refused(413, "the JSON has more than a million values");
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second)
        throw Refused(400, "the JSON has the key " + dump(parsed) + " twice", key);
      if (keys_.back().size() > kKeys) throw Refused(400, "an object of the JSON has more than 4096 keys");
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
  size_t values_ = 0;
};

std::string shown(const Json& value) {
  std::string text = dump(value);
  return text.size() <= 60
             ? text
             : std::string(value.type_name()) + " of " + std::to_string(text.size()) + " characters";
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

}  // namespace

Json parse_object(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) throw Refused(400, "the body is empty: JSON is wanted");
  Json json;
  try {
    Watch watch;
    json = Json::parse(text, [&watch](int depth, Json::parse_event_t event, Json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const Json::exception& error) {
    std::string words = error.what();
    const size_t bracket = words.find("] ");
    if (bracket != words.npos) words.erase(0, bracket + 2);
    if (words.size() > 200) words.resize(200);
    throw Refused(400, "the body is no JSON: " + words);
  }
  if (!json.is_object()) throw Refused(400, "the body must be a JSON object");
  return json;
}

std::string dump(const Json& json) { return tools::json_text(json, -1); }

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (letter == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += letter;
    }
  }
  return out + '"';
}

const Json* Fields::find(const char* name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::wrong(const char* name, const std::string& what, const Json& value) const {
  throw Refused(400, path(name) + " must be " + what + ", not " + shown(value), path(name));
}

const Json* Fields::list(const char* name) const {
  const Json* found = find(name);
  if (found && !found->is_array()) wrong(name, "a list", *found);
  return found;
}

const Json* Fields::object(const char* name) const {
  const Json* found = find(name);
  if (found && !found->is_object()) wrong(name, "an object", *found);
  return found;
}

const std::string* Fields::text(const char* name) const {
  const Json* found = find(name);
  if (found && !found->is_string()) wrong(name, "a text", *found);
  return found ? &found->get_ref<const std::string&>() : nullptr;
}

std::optional<bool> Fields::flag(const char* name) const {
  const Json* found = find(name);
  if (!found) return std::nullopt;
  if (!found->is_boolean()) wrong(name, "true or false", *found);
  return found->get<bool>();
}

std::optional<double> Fields::number(const char* name, double least, double most) const {
  const Json* found = find(name);
  if (!found) return std::nullopt;
  const std::string what = "a number from " + number_text(least) + " to " + number_text(most);
  if (!found->is_number()) wrong(name, what, *found);
  const auto value = found->get<double>();
  if (!(value >= least && value <= most)) wrong(name, what, *found);
  return value;
}

std::optional<int64_t> Fields::whole(const char* name, int64_t least, int64_t most) const {
  const Json* found = find(name);
  if (!found) return std::nullopt;
  const std::string what = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  if (!found->is_number()) wrong(name, what, *found);
  if (found->is_number_float()) {  // 5.0 is 5
    const auto value = found->get<double>();
    if (!(value == std::floor(value) && std::abs(value) < 9e15)) wrong(name, what, *found);
    const auto integer = static_cast<int64_t>(value);
    if (integer < least || integer > most) wrong(name, what, *found);
    return integer;
  }
  if (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    wrong(name, what, *found);
  const auto value = found->get<int64_t>();
  if (value < least || value > most) wrong(name, what, *found);
  return value;
}

const std::string* Fields::word(const char* name, const std::vector<std::string_view>& words) const {
  const std::string* given = text(name);
  if (!given) return nullptr;
  std::string what;
  for (const std::string_view each : words) {
    if (*given == each) return given;
    what += (what.empty() ? "" : ", ") + json_string(each);
  }
  wrong(name, "one of " + what, *given);
}

std::vector<std::string> texts_of(const Fields& fields, const char* name, size_t most) {
  const Json* found = fields.find(name);
  if (!found) return {};
  if (found->is_string()) return {found->get<std::string>()};
  const std::string what = "a text or a list of at most " + std::to_string(most) + " texts";
  if (!found->is_array() || found->size() > most) fields.wrong(name, what, *found);
  std::vector<std::string> texts;
  for (const Json& each : *found) {
    if (!each.is_string()) fields.wrong(name, what, *found);
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

}  // namespace greta::serve
