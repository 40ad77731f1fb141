// Functions that every template has.
#include <algorithm>
#include <chrono>
#include <ctime>

#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // as in Jinja's sandbox

Status range(Call& call) {
  const bool from_zero = !call[1];
  const int64_t start = from_zero ? 0 : call.integer(0), stop = call.integer(from_zero ? 0 : 1);
  const int64_t step = call.integer(2, 1);
  if (step == 0) return fail(Code::Argument, "range() arg 3 must not be zero");
  const uint64_t distance = step > 0 ? (stop > start ? uint64_t(stop) - uint64_t(start) : 0)
                                     : (start > stop ? uint64_t(start) - uint64_t(stop) : 0);
  const uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
  const uint64_t count = distance ? (distance - 1) / stride + 1 : 0;
  if (count > uint64_t(kMaxRange))
    return fail(Code::Argument, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%lld).",
                (long long)kMaxRange);
  GRETA_TRY(call.run.room(count * sizeof(Value)));
  GRETA_TRY(call.run.step(count));
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) items.push_back(Value(int64_t(uint64_t(start) + i * uint64_t(step))));
  const Value made = call.run.sequence(std::move(items), Flavor::Range);
  sequence_of(made)->range = {start, stop, step};
  return call.give(made);
}

// Reads the arguments of dict() and namespace(): a dict or pairs, then name=value.
Status fill(const Call& call, Dict* to) {
  Run& run = call.run;
  const auto& [places, names] = call.arguments;
  if (places.size() > 1) return fail(Code::Argument, "%s takes at most one value by position", call.row.name);
  if (!places.empty()) {
    for (const Value::Entry& entry : places[0].entries()) {
      GRETA_TRY(run.step());
      to->set(entry.key, entry.value);
    }
    std::vector<Value> pairs;
    if (!places[0].is_dict()) GRETA_TRY(collect(run, places[0], &pairs));
    for (const Value& pair : pairs) {
      std::vector<Value> both;
      GRETA_TRY(collect(run, pair, &both));
      if (both.size() != 2 || !is_hashable(both[0]))
        return fail(Code::Argument, "%s takes pairs of a key and a value", call.row.name);
      GRETA_TRY(run.step(1 + both[0].as_string().size() / 16));
      to->set(both[0], both[1]);
    }
  }
  for (const auto& [name, value] : names) {
    GRETA_TRY(run.step());
    to->set(run.text(name), value);
  }
  return {};
}

Status dict(Call& call) {
  Value made = call.run.dict();
  GRETA_TRY(fill(call, dict_of(made)));
  return call.give(std::move(made));
}

Status make_namespace(Call& call) {
  auto* space = new NamespaceObject(&call.run.budget);
  const Value made(Kind::Object, space);
  call.run.keep(space);
  GRETA_TRY(fill(call, &space->attributes));
  return call.give(made);
}

Status cycler(Call& call) {
  const auto& [places, names] = call.arguments;
  if (places.empty()) return fail(Code::Argument, "at least one item has to be provided");
  if (!names.empty()) return fail(Code::Argument, "cycler takes its items by position");
  auto* made = new CyclerObject(&call.run.budget);
  made->items = places;
  made->charge(places.size() * sizeof(Value));
  return call.give(Value(Kind::Object, made));
}

Status joiner(Call& call) {
  auto* made = new JoinerObject(&call.run.budget);
  made->separator = call[0] ? *call[0] : call.run.text(", ");
  return call.give(Value(Kind::Object, made));
}

Status raise_exception(Call& call) {
  std::string text;
  GRETA_TRY(to_text(call.run, *call[0], &text));
  return fail(Code::Argument, "%s", text.c_str());
}

// ---- the date ---------------------------------------------------------------------------------

// The date of a time in seconds since 1970, in the proleptic Gregorian calendar.
tm date_of(int64_t seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  const std::chrono::sys_days day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day ymd(day);
  const std::chrono::hh_mm_ss clock(time - day);
  tm date = {};
  date.tm_year = int(ymd.year()) - 1900;
  date.tm_mon = int(unsigned(ymd.month())) - 1;
  date.tm_mday = int(unsigned(ymd.day()));
  date.tm_hour = int(clock.hours().count());
  date.tm_min = int(clock.minutes().count());
  date.tm_sec = int(clock.seconds().count());
  date.tm_wday = int(std::chrono::weekday(day).c_encoding());
  date.tm_yday = int((day - std::chrono::sys_days(ymd.year() / 1 / 1)).count());
  return date;
}

// Names are written here, so that the locale of the process changes nothing.
constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                   "July",    "August",   "September", "October", "November", "December"};

// A letter after '%' stands for a number of the date, or for a text that is a format in turn. The time has no
// zone, so 'z' and 'Z' stand for nothing.
struct DateRow {
  char letter;
  int (*number)(const tm& date);
  size_t width;
  char fill;
  std::string_view (*text)(const tm& date);
};
#define NUMBER(expression) [](const tm& d) -> int { return expression; }
#define TEXT(expression) \
  nullptr, 0, 0, []([[maybe_unused]] const tm& d) -> std::string_view { return expression; }
constexpr DateRow kDateRows[] = {
    {'C', NUMBER((d.tm_year + 1900) / 100), 2, '0', nullptr},
    {'d', NUMBER(d.tm_mday), 2, '0', nullptr},
    {'e', NUMBER(d.tm_mday), 2, ' ', nullptr},
    {'H', NUMBER(d.tm_hour), 2, '0', nullptr},
    {'I', NUMBER((d.tm_hour + 11) % 12 + 1), 2, '0', nullptr},
    {'j', NUMBER(d.tm_yday + 1), 3, '0', nullptr},
    {'k', NUMBER(d.tm_hour), 2, ' ', nullptr},
    {'l', NUMBER((d.tm_hour + 11) % 12 + 1), 2, ' ', nullptr},
    {'m', NUMBER(d.tm_mon + 1), 2, '0', nullptr},
    {'M', NUMBER(d.tm_min), 2, '0', nullptr},
    {'S', NUMBER(d.tm_sec), 2, '0', nullptr},
    {'u', NUMBER(d.tm_wday ? d.tm_wday : 7), 1, '0', nullptr},
    {'w', NUMBER(d.tm_wday), 1, '0', nullptr},
    {'y', NUMBER((d.tm_year + 1900) % 100), 2, '0', nullptr},
    {'Y', NUMBER(d.tm_year + 1900), 1, '0', nullptr},
    {'a', TEXT(std::string_view(kDays[d.tm_wday]).substr(0, 3))},
    {'A', TEXT(kDays[d.tm_wday])},
    {'b', TEXT(std::string_view(kMonths[d.tm_mon]).substr(0, 3))},
    {'h', TEXT(std::string_view(kMonths[d.tm_mon]).substr(0, 3))},
    {'B', TEXT(kMonths[d.tm_mon])},
    {'p', TEXT(d.tm_hour < 12 ? "AM" : "PM")},
    {'f', TEXT("000000")},
    {'n', TEXT("\n")},
    {'t', TEXT("\t")},
    {'c', TEXT("%a %b %e %H:%M:%S %Y")},
    {'D', TEXT("%m/%d/%y")},
    {'x', TEXT("%m/%d/%y")},
    {'F', TEXT("%Y-%m-%d")},
    {'r', TEXT("%I:%M:%S %p")},
    {'R', TEXT("%H:%M")},
    {'T', TEXT("%H:%M:%S")},
    {'X', TEXT("%H:%M:%S")},
    {'z', TEXT("")},
    {'Z', TEXT("")},
    {'%', TEXT("%")},
};
#undef NUMBER
#undef TEXT

Status write_date(const tm& date, int64_t now_s, std::string_view format, std::string* out) {
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      *out += format[i];
      continue;
    }
    char sign = 0;  // '-': no fill, '_': blanks, '0': zeros
    if (std::string_view("-_0").find(format[i + 1]) != std::string_view::npos && i + 2 < format.size())
      sign = format[++i];
    const char letter = format[++i];
    const auto row = std::find_if(std::begin(kDateRows), std::end(kDateRows),
                                  [&](const DateRow& each) { return each.letter == letter; });
    if (letter == 's') {
      *out += std::to_string(now_s);
    } else if (row == std::end(kDateRows)) {
      return fail(Code::Unsupported, "%%%c in the format of a date is not supported", letter);
    } else if (row->text) {
      GRETA_TRY(write_date(date, now_s, row->text(date), out));
    } else {
      const std::string digits = std::to_string(row->number(date));
      const char fill = sign == '_' ? ' ' : sign == '0' ? '0' : row->fill;
      if (sign != '-' && digits.size() < row->width) out->append(row->width - digits.size(), fill);
      *out += digits;
    }
  }
  return {};
}

Status strftime_now(Call& call) {
  const int64_t now_s = call.run.now_s;
  if (now_s < -62135596800 || now_s > 253402300799)
    return fail(Code::Argument, "the time is not within the years 1 to 9999");
  GRETA_TRY(call.run.room(call.text(0).size() * 16));
  std::string text;
  GRETA_TRY(write_date(date_of(now_s), now_s, call.text(0), &text));
  return call.give(call.run.text(std::move(text)));
}

constexpr FunctionRow kGlobals[] = {
    {"range", range, 1, {{"start", kInt}, {"stop", kInt}, {"step", kInt}}},
    {"dict", dict, kReadsArguments},
    {"namespace", make_namespace, kReadsArguments},
    {"cycler", cycler, kReadsArguments},
    {"joiner", joiner, 0, {{"sep"}}},
    {"raise_exception", raise_exception, 1, {{"message"}}},
    {"strftime_now", strftime_now, 1, {{"format", kText}}},
};

}  // namespace

const FunctionRow* find_global(std::string_view name) { return find_row(kGlobals, name); }

}  // namespace greta::jinja
