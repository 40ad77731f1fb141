// The filters, tests, methods and functions that templates call. Each is a row of a table that names its
// parameters. `invoke` checks arguments against them, so the functions need not.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/run.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {

// What a parameter takes. "OrNone": None counts as if nothing was given.
enum Takes : uint8_t { kAny, kInt, kFlag, kText, kAnyOrNone, kIntOrNone, kTextOrNone };

// A name of several words is no name in Python, so such an argument can only be given by its place.
struct ParameterRow {
  const char* name = nullptr;
  Takes takes = kAny;
};
constexpr size_t kMaxParameters = 4;

// A call of one function.
struct Call {
  Run& run;
  const FunctionRow& row;
  const Value& self;           // what a filter, a test or a method works on
  const Arguments& arguments;  // as they were written
  Value* result;
  const Value* slots[kMaxParameters] = {};  // the arguments by parameter; null where nothing was given

  const Value* operator[](size_t i) const { return slots[i]; }
  bool is_true(size_t i) const { return slots[i] && slots[i]->is_true(); }
  int64_t integer(size_t i, int64_t otherwise = 0) const {
    return slots[i] ? whole_of(*slots[i]) : otherwise;
  }
  std::string_view text(size_t i, std::string_view otherwise = {}) const {
    return slots[i] ? slots[i]->as_string() : otherwise;
  }
  Status self_text(std::string* out) const { return to_text(run, self, out); }

  Status give(Value value) { return *result = std::move(value), Status{}; }
  Status give_list(std::vector<Value>&& items, Flavor flavor = Flavor::List) {
    return give(run.sequence(std::move(items), flavor));
  }
  Status give_text(std::string&& text);  // which is safe in HTML if `self` is
};

constexpr int kReadsArguments = -1;  // in place of `required`: the function reads call.arguments itself

struct FunctionRow {
  const char* name;
  Status (*function)(Call& call);
  int required = 0;  // how many parameters must be given, from the first on
  ParameterRow parameters[kMaxParameters] = {};
};
using FunctionRows = std::span<const FunctionRow>;

// Each is null if there is none of this name.
const FunctionRow* find_row(FunctionRows rows, std::string_view name);
const FunctionRow* find_filter(std::string_view name);
const FunctionRow* find_test(std::string_view name);
const FunctionRow* find_global(std::string_view name);
const FunctionRow* find_method(const Value& self, std::string_view name);

FunctionRows text_filters();
FunctionRows list_filters();
FunctionRows text_methods();
extern const FunctionRow loop_call, joiner_call;  // what calling a loop or a joiner does
Status format_method(Call& call);                 // str.format

// These fail if the value is of another type. `what` names the value.
Status want_int(const char* what, const Value& value, int64_t* out);
Status want_text(const char* what, const Value& value, std::string_view* out);
Status beyond_64_bits();  // the failure of an integer that does not fit

// ---- texts, as Python has them ----
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_folded(std::string_view text);       // for comparing without regard to case
std::string to_title(std::string_view text);        // each word: a run of letters
std::string to_title_words(std::string_view text);  // words begin after white space, '-' and opening brackets
std::string to_swapped(std::string_view text);      // capitals to small letters and back
std::string to_capitalized(std::string_view text);
// Returns true if the text has letters of one case and none of the other.
bool is_in_case(std::string_view text, CharClass wanted, CharClass other);
// The text without white space at either end, or without the characters `chars` if they are given.
std::string_view strip(std::string_view text, const Value* chars, bool left, bool right);
uint64_t code_points(std::string_view text);
size_t byte_of(std::string_view text, uint64_t code_point);  // where it starts; the text's size at most
std::string escape_html(std::string_view text);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// Both take linear time, and return npos if the part is not in the text.
size_t find_bytes(std::string_view text, std::string_view part, size_t from);
size_t rfind_bytes(std::string_view text, std::string_view part);
// The attribute "a.b.0" of a value, or `otherwise` (which may be null) if it is undefined.
Status nested_attribute(Run& run, const Value& value, const Value& path, const Value* otherwise, Value* out);

}  // namespace greta::jinja
