// Functions that every template has.
#include <ctime>
#include <functional>

#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // as in Jinja's sandbox

Status range(Run& run, const Value&, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("range()", arguments, {"start", "stop", "step"}, 1, slots));
  int64_t start = 0, stop, step = 1;
  GRETA_TRY(want_int("an argument of range()", *slots[0], slots[1] ? &start : &stop));
  if (slots[1]) GRETA_TRY(want_int("an argument of range()", *slots[1], &stop));
  if (slots[2]) GRETA_TRY(want_int("an argument of range()", *slots[2], &step));
  if (step == 0) return fail(Code::Argument, "range() arg 3 must not be zero");
  const uint64_t distance = step > 0 ? (stop > start ? uint64_t(stop) - uint64_t(start) : 0)
                                     : (start > stop ? uint64_t(start) - uint64_t(stop) : 0);
  const uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
  const uint64_t count = distance ? (distance - 1) / stride + 1 : 0;
  if (count > uint64_t(kMaxRange))
    return fail(Code::Argument, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%lld).",
                (long long)kMaxRange);
  GRETA_TRY(run.room(count * sizeof(Value)));
  GRETA_TRY(run.step(count));
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) items.push_back(Value(int64_t(uint64_t(start) + i * uint64_t(step))));
  *out = run.sequence(std::move(items), Flavor::Range);
  int64_t* const bounds = sequence_of(*out)->range;
  bounds[0] = start;
  bounds[1] = stop;
  bounds[2] = step;
  return {};
}

// What dict() and namespace() take: a dict or pairs, and names.
Status fill(Run& run, const char* function, const Arguments& arguments, Dict* to) {
  if (arguments.places.size() > 1)
    return fail(Code::Argument, "%s takes at most one value by position", function);
  if (!arguments.places.empty()) {
    const Value& given = arguments.places[0];
    for (const Value::Entry& entry : given.entries()) {
      GRETA_TRY(run.step());
      to->set(entry.key, entry.value);
    }
    std::vector<Value> pairs;
    if (!given.is_dict()) GRETA_TRY(collect(run, given, &pairs));
    for (const Value& pair : pairs) {
      std::vector<Value> both;
      GRETA_TRY(collect(run, pair, &both));
      if (both.size() != 2 || !is_hashable(both[0]))
        return fail(Code::Argument, "%s takes pairs of a key and a value", function);
      GRETA_TRY(run.step(1 + both[0].as_string().size() / 16));
      to->set(both[0], both[1]);
    }
  }
  for (const auto& [name, value] : arguments.names) {
    GRETA_TRY(run.step());
    to->set(run.text(name), value);
  }
  return {};
}

Status dict(Run& run, const Value&, const Arguments& arguments, Value* out) {
  Value made = run.dict();
  GRETA_TRY(fill(run, "dict()", arguments, dict_of(made)));
  *out = std::move(made);
  return {};
}

Status make_namespace(Run& run, const Value&, const Arguments& arguments, Value* out) {
  auto* space = new NamespaceObject(&run.budget);
  const Value made(Kind::Object, space);
  run.keep(space);
  GRETA_TRY(fill(run, "namespace()", arguments, &space->attributes));
  *out = made;
  return {};
}

Status cycler(Run& run, const Value&, const Arguments& arguments, Value* out) {
  if (arguments.places.empty()) return fail(Code::Argument, "at least one item has to be provided");
  if (!arguments.names.empty()) return fail(Code::Argument, "cycler() takes its items by position");
  auto* made = new CyclerObject(&run.budget);
  *out = Value(Kind::Object, made);
  made->items = arguments.places;
  made->charge(made->items.size() * sizeof(Value));
  return {};
}

Status joiner(Run& run, const Value&, const Arguments& arguments, Value* out) {
  const Value* separator;
  GRETA_TRY(bind("joiner()", arguments, {"sep"}, 0, &separator));
  auto* made = new JoinerObject(&run.budget);
  *out = Value(Kind::Object, made);
  made->separator = separator ? *separator : run.text(", ");
  return {};
}

Status raise_exception(Run& run, const Value&, const Arguments& arguments, Value*) {
  const Value* message;
  GRETA_TRY(bind("raise_exception()", arguments, {"message"}, 1, &message));
  std::string text;
  GRETA_TRY(to_text(run, *message, &text));
  return fail(Code::Argument, "%s", text.c_str());
}

// ---- the date ---------------------------------------------------------------------------------

// The day in the proleptic Gregorian calendar, counted in eras of 400 years from 1 March of year 0.
tm date_of(int64_t seconds) {
  int64_t days = seconds / 86400, rest = seconds % 86400;
  if (rest < 0) rest += 86400, --days;
  const int64_t shifted = days + 719468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const int64_t year = year_of_era + era * 400 + (month <= 2);
  tm date = {};
  date.tm_year = int(year - 1900);
  date.tm_mon = int(month - 1);
  date.tm_mday = int(day_of_year - (153 * month_from_march + 2) / 5 + 1);
  date.tm_hour = int(rest / 3600);
  date.tm_min = int(rest / 60 % 60);
  date.tm_sec = int(rest % 60);
  date.tm_wday = int(((days + 4) % 7 + 7) % 7);
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  constexpr int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  date.tm_yday = kBefore[month - 1] + date.tm_mday - 1 + (leap && month > 2);
  return date;
}

// In the C locale, whatever the process has set: names are written here.
Status strftime_now(Run& run, const Value&, const Arguments& arguments, Value* out) {
  const Value* slot;
  std::string_view form;
  GRETA_TRY(bind("strftime_now()", arguments, {"format"}, 1, &slot));
  GRETA_TRY(want_text("the format", *slot, &form));
  if (run.now_s < -62135596800 || run.now_s > 253402300799)
    return fail(Code::Argument, "the time is not within the years 1 to 9999");
  GRETA_TRY(run.room(form.size() * 16));
  const tm date = date_of(run.now_s);
  constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
  constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
  std::string text;
  char sign = 0;
  const auto number = [&](int value, int width, char fill) {
    std::string digits = std::to_string(value);
    if (sign == '_') fill = ' ';
    if (sign == '0') fill = '0';
    while (sign != '-' && int(digits.size()) < width) digits.insert(digits.begin(), fill);
    text += digits;
  };
  const std::function<Status(std::string_view)> write = [&](std::string_view f) -> Status {
    for (size_t i = 0; i < f.size(); ++i) {
      if (f[i] != '%' || i + 1 == f.size()) {
        text += f[i];
        continue;
      }
      sign = 0;
      if (std::string_view("-_0").find(f[i + 1]) != std::string_view::npos && i + 2 < f.size()) sign = f[++i];
      const int hour12 = date.tm_hour % 12 ? date.tm_hour % 12 : 12;
      switch (f[++i]) {
        case 'a':
          text.append(kDays[date.tm_wday], 3);
          break;
        case 'A':
          text += kDays[date.tm_wday];
          break;
        case 'b':
        case 'h':
          text.append(kMonths[date.tm_mon], 3);
          break;
        case 'B':
          text += kMonths[date.tm_mon];
          break;
        case 'c':
          GRETA_TRY(write("%a %b %e %H:%M:%S %Y"));
          break;
        case 'C':
          number((date.tm_year + 1900) / 100, 2, '0');
          break;
        case 'd':
          number(date.tm_mday, 2, '0');
          break;
        case 'D':
        case 'x':
          GRETA_TRY(write("%m/%d/%y"));
          break;
        case 'e':
          number(date.tm_mday, 2, ' ');
          break;
        case 'f':
          text += "000000";
          break;
        case 'F':
          GRETA_TRY(write("%Y-%m-%d"));
          break;
        case 'H':
          number(date.tm_hour, 2, '0');
          break;
        case 'I':
          number(hour12, 2, '0');
          break;
        case 'j':
          number(date.tm_yday + 1, 3, '0');
          break;
        case 'k':
          number(date.tm_hour, 2, ' ');
          break;
        case 'l':
          number(hour12, 2, ' ');
          break;
        case 'm':
          number(date.tm_mon + 1, 2, '0');
          break;
        case 'M':
          number(date.tm_min, 2, '0');
          break;
        case 'n':
          text += '\n';
          break;
        case 'p':
          text += date.tm_hour < 12 ? "AM" : "PM";
          break;
        case 'r':
          GRETA_TRY(write("%I:%M:%S %p"));
          break;
        case 'R':
          GRETA_TRY(write("%H:%M"));
          break;
        case 's':
          text += std::to_string(run.now_s);
          break;
        case 'S':
          number(date.tm_sec, 2, '0');
          break;
        case 't':
          text += '\t';
          break;
        case 'T':
        case 'X':
          GRETA_TRY(write("%H:%M:%S"));
          break;
        case 'u':
          number(date.tm_wday ? date.tm_wday : 7, 1, '0');
          break;
        case 'w':
          number(date.tm_wday, 1, '0');
          break;
        case 'y':
          number((date.tm_year + 1900) % 100, 2, '0');
          break;
        case 'Y':
          number(date.tm_year + 1900, 1, '0');
          break;
        case 'z':
        case 'Z':
          break;  // the time is without a zone
        case '%':
          text += '%';
          break;
        default:
          return fail(Code::Unsupported, "%%%c in the format of a date is not supported", f[i]);
      }
    }
    return {};
  };
  GRETA_TRY(write(form));
  *out = run.text(std::move(text));
  return {};
}

constexpr FunctionRow kGlobals[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", make_namespace},
    {"cycler", cycler},
    {"joiner", joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

Function find_global(std::string_view name) {
  for (const FunctionRow& row : kGlobals)
    if (name == row.name) return row.function;
  return nullptr;
}

}  // namespace greta::jinja
