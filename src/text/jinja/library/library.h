// What templates call: filters, tests, methods and functions, by their names.
#pragma once
#include <initializer_list>
#include <string_view>

#include "text/jinja/run.h"

namespace greta::jinja {

Function find_filter(std::string_view name);  // null if there is none
Predicate find_test(std::string_view name);
Function find_global(std::string_view name);
// Of a value of this kind; the name comes back as one that lives on.
Function find_method(const Value& self, std::string_view name, const char** lasting);

struct FunctionRow {
  const char* name;
  Function function;
};
using FunctionRows = std::span<const FunctionRow>;
FunctionRows text_filters();
FunctionRows list_filters();
FunctionRows number_filters();
FunctionRows text_methods();
FunctionRows format_methods();

// Arguments by the names of parameters: slots[i] is null where nothing was given. Fails for too many,
// unknown names, and if one of the first `required` is missing. A parameter of several words has no name
// in Python, and is given by its place alone.
Status bind(const char* function, const Arguments& arguments, std::initializer_list<const char*> parameters,
            size_t required, const Value** slots);

// What an argument must be; `what` names it.
Status want_int(const char* what, const Value& value, int64_t* out);
Status want_text(const char* what, const Value& value, std::string_view* out);
Status want_flag(const char* what, const Value* value, bool* out);  // false where it is null

// ---- texts, as Python has them ----
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_folded(std::string_view text);  // for comparing without regard to case
std::string to_title(std::string_view text);   // each word
std::string to_capitalized(std::string_view text);
std::string_view strip(std::string_view text, const Value* chars, bool left, bool right);
uint64_t code_points(std::string_view text);
size_t byte_of(std::string_view text, uint64_t code_point);  // where it starts; the text's size at most
std::string escape_html(std::string_view text);
std::string ascii_only(std::string_view text);  // with \x, \u and \U
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
Status pad(Run& run, std::string_view text, int64_t width, std::string_view fill, int align, Value* out);
// In linear time; npos if there is none.
size_t find_bytes(std::string_view text, std::string_view part, size_t from);
size_t rfind_bytes(std::string_view text, std::string_view part);
Status replace(Run& run, std::string_view text, std::string_view from, std::string_view to, int64_t count,
               std::string* out);
// a.b.0 of a value; `fallback` may be null.
Status nested_attribute(Run& run, const Value& value, const Value& path, const Value* fallback, Value* out);
Status join(Run& run, std::string_view separator, std::span<const Value> items, bool any, std::string* out);

}  // namespace greta::jinja
