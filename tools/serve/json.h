// JSON of requests: one place reads it, and one place checks names, types and ranges of its fields.
#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json.h"

namespace greta::serve {

using tools::Json;  // Templates write the keys of tools in the order in which they came.

// A request that is refused. Handlers throw it, and the form of the path writes it.
struct Refused : std::exception {
  Refused(int status_, std::string message_, std::string param_ = "")
      : status(status_), message(std::move(message_)), param(std::move(param_)) {}
  const char* what() const noexcept override { return message.c_str(); }
  int status;
  std::string message;
  std::string param;     // the field that is wrong; "": none alone
  std::string type;      // "": the one that goes with the status
  Json more;             // further fields of the error, an object or null
  uint32_t retry_s = 0;  // Retry-After
};

// Reads the body of a request. What is no JSON object, nested deeper than 256, has a key twice, or has more
// than a million values is refused.
Json parse_object(const std::string& text);

std::string dump(const Json& json);              // one line; what is not UTF-8 becomes U+FFFD
std::string json_string(std::string_view text);  // a JSON string; the text is UTF-8

// The fields of an object. A field that is null counts as absent. A wrong one is refused by its name.
class Fields {
 public:
  explicit Fields(const Json& object, std::string path = "") : object_(object), path_(std::move(path)) {}
  bool has(const char* name) const { return find(name) != nullptr; }
  const Json* find(const char* name) const;
  const Json* list(const char* name) const;
  const Json* object(const char* name) const;
  const std::string* text(const char* name) const;
  std::optional<bool> flag(const char* name) const;
  std::optional<double> number(const char* name, double least, double most) const;
  std::optional<int64_t> whole(const char* name, int64_t least, int64_t most) const;
  // One of several words.
  const std::string* word(const char* name, const std::vector<std::string_view>& words) const;
  std::string path(const char* name) const { return path_ + name; }
  const Json& all() const { return object_; }
  [[noreturn]] void wrong(const char* name, const std::string& what, const Json& value) const;

 private:
  const Json& object_;
  std::string path_;  // "messages[2]."
};

// A list of texts, or one text.
std::vector<std::string> texts_of(const Fields& fields, const char* name, size_t most);

}  // namespace greta::serve
