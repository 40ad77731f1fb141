// Finds the functions of the library and calls them.
#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

Status check_type(const ParameterRow& parameter, const Value& value) {
  int64_t number;
  std::string_view text;
  switch (parameter.takes) {
    case kInt:
    case kFlag:
    case kIntOrNone:
      return want_int(parameter.name, value, &number);
    case kText:
    case kTextOrNone:
      return want_text(parameter.name, value, &text);
    default:
      return {};
  }
}

// Puts each argument into the slot of its parameter.
Status bind(Call* call) {
  const auto& [name, function, required, parameters] = call->row;
  const auto& [places, names] = call->arguments;
  size_t count = 0;
  while (count < kMaxParameters && parameters[count].name) ++count;
  if (places.size() > count)
    return fail(Code::Argument, "%s takes at most %zu arguments, but got %zu", name, count, places.size());
  for (size_t i = 0; i < places.size(); ++i) call->slots[i] = &places[i];
  for (const auto& [given, value] : names) {
    size_t i = 0;
    while (i < count && given != parameters[i].name) ++i;
    if (i == count) return fail(Code::Argument, "%s has no argument \"%s\"", name, given.c_str());
    if (call->slots[i]) return fail(Code::Argument, "%s got the argument \"%s\" twice", name, given.c_str());
    call->slots[i] = &value;
  }
  for (size_t i = 0; i < count; ++i) {
    const Value*& slot = call->slots[i];
    if (!slot && int(i) < required)
      return fail(Code::Argument, "%s needs the argument \"%s\"", name, parameters[i].name);
    if (slot && slot->is_none() && parameters[i].takes >= kAnyOrNone) slot = nullptr;
    if (slot) GRETA_TRY(check_type(parameters[i], *slot));
  }
  return {};
}

}  // namespace

Status invoke(Run& run, const FunctionRow& row, const Value& self, const Arguments& arguments,
              Value* result) {
  Call call{run, row, self, arguments, result};
  if (row.required != kReadsArguments) GRETA_TRY(bind(&call));
  return row.function(call);
}

Status Call::give_text(std::string&& text) {
  GRETA_TRY(run.room(text.size()));
  return give(run.text(std::move(text), self.is_markup()));
}

Status want_int(const char* what, const Value& value, int64_t* out) {
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_int() && !value.is_bool())
    return fail(Code::Argument, "%s must be an integer, not %s", what, value.type_name());
  *out = whole_of(value);
  return {};
}

Status want_text(const char* what, const Value& value, std::string_view* out) {
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_string()) return fail(Code::Argument, "%s must be a string, not %s", what, value.type_name());
  *out = value.as_string();
  return {};
}

Status beyond_64_bits() { return fail(Code::Argument, "an integer does not fit 64 bits"); }

const FunctionRow* find_row(FunctionRows rows, std::string_view name) {
  for (const FunctionRow& row : rows)
    if (name == row.name) return &row;
  return nullptr;
}

}  // namespace greta::jinja
