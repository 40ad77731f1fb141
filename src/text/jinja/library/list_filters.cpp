// Filters over lists and dicts.
#include <algorithm>
#include <charconv>

#include "text/jinja/library/library.h"
#include "text/jinja/print.h"

namespace greta::jinja {

// "a.b.0" as a.b[0]; an integer is an index, None the value itself. Where the end is undefined, `fallback`,
// which may be null.
Status nested_attribute(Run& run, const Value& value, const Value& path, const Value* fallback, Value* out) {
  Value now = value;
  std::string_view rest = path.as_string();
  for (bool more = !path.is_none(); more;) {
    GRETA_TRY(run.step());
    Value index = path;
    const size_t dot = rest.find('.');
    more = dot != rest.npos;
    if (path.is_string()) {
      const std::string_view part = rest.substr(0, dot);
      if (more) rest.remove_prefix(dot + 1);
      int64_t number;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
      const bool whole = error == std::errc() && end == part.data() + part.size() && part[0] != '-';
      index = whole ? Value(number) : run.text(part);
    }
    GRETA_TRY(run.item(now, index, &now));
    if (fallback && !fallback->is_none() && now.is_undefined()) now = *fallback;
  }
  *out = std::move(now);
  return {};
}

namespace {

// Items beside the keys that they are sorted or compared by: an attribute, in lower case if it is a
// text and case does not matter. Of sort, several attributes between commas.
struct Keyed {
  Value item;
  std::vector<Value> keys;
  bool listed = false;  // compared as Python compares lists: equal keys need no order
};

Status fold(Run& run, bool case_sensitive, Value* key) {
  if (case_sensitive || !key->is_string()) return {};
  GRETA_TRY(run.room(key->as_string().size()));
  GRETA_TRY(run.step(key->as_string().size() / 4));
  *key = run.text(to_lower(key->as_string()));
  return {};
}

Status key_items(Run& run, const Value& subject, const Value* attribute, bool several, bool case_sensitive,
                 const Value* fallback, std::vector<Keyed>* out) {
  std::vector<Value> items, paths;
  GRETA_TRY(collect(run, subject, &items));
  if (attribute && attribute->is_string() && several) {
    std::string_view rest = attribute->as_string();
    for (size_t comma; (comma = rest.find(',')) != rest.npos; rest.remove_prefix(comma + 1))
      paths.push_back(run.text(rest.substr(0, comma)));
    paths.push_back(run.text(rest));
  } else if (attribute && !attribute->is_none()) {
    paths.push_back(*attribute);
  }
  for (const Value& item : items) {
    Keyed keyed{item, {}, several};
    if (paths.empty()) keyed.keys.push_back(item);
    for (const Value& path : paths)
      GRETA_TRY(nested_attribute(run, item, path, fallback, &keyed.keys.emplace_back()));
    for (Value& key : keyed.keys) GRETA_TRY(fold(run, case_sensitive, &key));
    GRETA_TRY(run.room(sizeof(Keyed) + keyed.keys.size() * sizeof(Value)));
    out->push_back(std::move(keyed));
  }
  return {};
}

Status keys_less(Run& run, const Keyed& a, const Keyed& b, bool* out) {
  *out = false;
  for (size_t i = 0; i < a.keys.size(); ++i) {
    bool same = false;
    if (a.listed) GRETA_TRY(equal(run, a.keys[i], b.keys[i], &same));
    if (!same) return less(run, a.keys[i], b.keys[i], out);
  }
  return {};
}

// Stable. Comparing may fail, so the merge is our own; `reverse` keeps equal ones in their order, too.
Status sort_keyed(Run& run, bool reverse, std::vector<Keyed>* items) {
  std::vector<Keyed> other(items->size());
  for (size_t width = 1; width < items->size(); width *= 2) {
    for (size_t start = 0; start < items->size(); start += 2 * width) {
      const size_t middle = std::min(start + width, items->size()),
                   end = std::min(start + 2 * width, items->size());
      size_t left = start, right = middle;
      for (size_t to = start; to < end; ++to) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          const Keyed &l = (*items)[left], &r = (*items)[right];
          GRETA_TRY(reverse ? keys_less(run, l, r, &take_right) : keys_less(run, r, l, &take_right));
        }
        other[to] = std::move((*items)[take_right ? right++ : left++]);
      }
    }
    items->swap(other);
  }
  return {};
}

Value items_of(Run& run, std::vector<Keyed>&& keyed) {
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (Keyed& each : keyed) items.push_back(std::move(each.item));
  return run.sequence(std::move(items));
}

bool truth(const Value* value) { return value && value->is_true(); }

Status sort(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0, slots));
  bool reverse;
  GRETA_TRY(want_flag("reverse", slots[0], &reverse));
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(run, subject, slots[2], true, truth(slots[1]), nullptr, &keyed));
  GRETA_TRY(sort_keyed(run, reverse, &keyed));
  *out = items_of(run, std::move(keyed));
  return {};
}

Status dictsort(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0, slots));
  if (subject.is_undefined()) return undefined_error(subject);
  if (!subject.is_dict()) return fail(Code::Argument, "dictsort takes a dict, not %s", subject.type_name());
  const std::string_view by = slots[1] ? slots[1]->as_string() : "key";
  if (by != "key" && by != "value") return fail(Code::Argument, "dictsort sorts by \"key\" or \"value\"");
  bool reverse;
  GRETA_TRY(want_flag("reverse", slots[2], &reverse));
  std::vector<Keyed> keyed;
  for (const Value::Entry& entry : subject.entries()) {
    GRETA_TRY(run.room(sizeof(Keyed) + sizeof(Value)));
    keyed.push_back({run.pair(entry.key, entry.value), {by == "key" ? entry.key : entry.value}, false});
    GRETA_TRY(fold(run, truth(slots[0]), &keyed.back().keys[0]));
  }
  GRETA_TRY(sort_keyed(run, reverse, &keyed));
  *out = items_of(run, std::move(keyed));
  return {};
}

Status unique(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("unique", arguments, {"case_sensitive", "attribute"}, 0, slots));
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(run, subject, slots[1], false, truth(slots[0]), nullptr, &keyed));
  Dict seen(&run.budget);
  std::vector<Value> items;
  for (Keyed& each : keyed) {
    Value& key = each.keys[0];
    if (key.is_undefined()) key = run.pair(Value(nullptr), Value("undefined"));  // equal to its like alone
    if (!is_hashable(key)) return fail(Code::Argument, "unhashable type: '%s'", key.type_name());
    GRETA_TRY(run.step(1 + key.as_string().size() / 16));
    if (seen.find(key)) continue;
    seen.set(std::move(key), Value(true));
    items.push_back(std::move(each.item));
  }
  *out = run.sequence(std::move(items), Flavor::Generator);
  return {};
}

template <bool Largest>
Status extreme(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind(Largest ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0, slots));
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(run, subject, slots[1], false, truth(slots[0]), nullptr, &keyed));
  if (keyed.empty()) return *out = run.undefined("No aggregated item, sequence was empty."), Status{};
  size_t best = 0;
  for (size_t i = 1; i < keyed.size(); ++i) {
    bool better;
    GRETA_TRY(Largest ? keys_less(run, keyed[best], keyed[i], &better)
                      : keys_less(run, keyed[i], keyed[best], &better));
    if (better) best = i;
  }
  *out = keyed[best].item;
  return {};
}

Status groupby(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1, slots));
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(run, subject, slots[0], false, truth(slots[2]), slots[1], &keyed));
  GRETA_TRY(sort_keyed(run, false, &keyed));
  std::vector<Value> groups;
  for (size_t start = 0, end; start < keyed.size(); start = end) {
    std::vector<Value> members;
    for (end = start; end < keyed.size(); ++end) {
      bool same = true;
      if (end > start) GRETA_TRY(equal(run, keyed[start].keys[0], keyed[end].keys[0], &same));
      if (!same) break;
      members.push_back(keyed[end].item);
    }
    Value key;  // as the first of the group has it, not folded
    GRETA_TRY(nested_attribute(run, keyed[start].item, *slots[0], slots[1], &key));
    groups.push_back(run.sequence({key, run.sequence(std::move(members))}, Flavor::Group));
  }
  *out = run.sequence(std::move(groups));
  return {};
}

// ---- map, select, reject ----------------------------------------------------------------------

Arguments without(const Arguments& arguments, size_t first) {
  Arguments rest;
  rest.places.assign(arguments.places.begin() + std::ptrdiff_t(std::min(first, arguments.places.size())),
                     arguments.places.end());
  rest.names = arguments.names;
  return rest;
}

Status map(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  std::vector<Value> items;
  if (subject.is_true()) GRETA_TRY(collect(run, subject, &items));  // else nothing, even of None
  const Value *attribute = nullptr, *fallback = nullptr;
  if (arguments.places.empty()) {
    const Value* slots[2];
    GRETA_TRY(bind("map", arguments, {"attribute", "default"}, items.empty() ? 0 : 1, slots));
    attribute = slots[0];
    fallback = slots[1];
  }
  const Arguments rest = without(arguments, 1);
  std::string name;
  if (!attribute && !arguments.places.empty()) GRETA_TRY(to_text(run, arguments.places[0], &name));
  for (Value& item : items) {
    Value made;
    GRETA_TRY(attribute ? nested_attribute(run, item, *attribute, fallback, &made)
                        : run.filter(name, item, rest, &made));
    item = std::move(made);
  }
  *out = run.sequence(std::move(items), Flavor::Generator);
  return {};
}

template <bool Keep, bool ByAttribute>
Status choose(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  std::vector<Value> items, chosen;
  if (subject.is_true()) GRETA_TRY(collect(run, subject, &items));
  const size_t offset = ByAttribute ? 1 : 0;
  if (ByAttribute && arguments.places.empty() && !items.empty())
    return fail(Code::Argument, "the name of an attribute is missing");
  const Arguments rest = without(arguments, offset + 1);
  std::string name;
  const bool by_test = arguments.places.size() > offset;
  if (by_test) GRETA_TRY(to_text(run, arguments.places[offset], &name));
  for (Value& item : items) {
    Value looked_at = item;
    bool yes;
    if (ByAttribute) GRETA_TRY(nested_attribute(run, item, arguments.places[0], nullptr, &looked_at));
    if (by_test)
      GRETA_TRY(run.test(name, looked_at, rest, &yes));
    else
      yes = looked_at.is_true();
    if (yes == Keep) chosen.push_back(std::move(item));
  }
  *out = run.sequence(std::move(chosen), Flavor::Generator);
  return {};
}

// ---- parts of a list --------------------------------------------------------------------------

Status first(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("first", arguments, {}, 0, nullptr));
  Cursor cursor;
  GRETA_TRY(start(subject, &cursor));
  if (!cursor.next(&run.budget, out)) *out = run.undefined("No first item, sequence was empty.");
  return {};
}

Status reversed(Run& run, const Value& subject, std::vector<Value>* out) {
  GRETA_TRY(collect(run, subject, out));
  std::reverse(out->begin(), out->end());
  return {};
}

bool is_generator(const Value& value) {
  const Sequence* sequence = sequence_of(value);
  return sequence && sequence->flavor == Flavor::Generator;
}

Status last(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("last", arguments, {}, 0, nullptr));
  if (is_generator(subject)) return fail(Code::Argument, "'generator' object is not reversible");
  std::vector<Value> items;
  GRETA_TRY(collect(run, subject, &items));
  *out = items.empty() ? run.undefined("No last item, sequence was empty.") : items.back();
  return {};
}

Status reverse(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("reverse", arguments, {}, 0, nullptr));
  std::vector<Value> items;
  GRETA_TRY(reversed(run, subject, &items));
  if (!subject.is_string()) {
    const bool list = is_generator(subject) || subject.is_undefined();
    *out = run.sequence(std::move(items), list ? Flavor::List : Flavor::Generator);
    return {};
  }
  std::string text;
  for (const Value& item : items) text += item.as_string();
  *out = run.text(std::move(text), subject.is_markup());
  return {};
}

Status list(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("list", arguments, {}, 0, nullptr));
  std::vector<Value> items;
  GRETA_TRY(collect(run, subject, &items));
  *out = run.sequence(std::move(items));
  return {};
}

Status length(Run&, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("length", arguments, {}, 0, nullptr));
  int64_t count;
  GRETA_TRY(length_of(subject, &count));
  *out = count;
  return {};
}

Status items(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("items", arguments, {}, 0, nullptr));
  if (!subject.is_dict() && !subject.is_undefined())
    return fail(Code::Argument, "Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const Value::Entry& entry : subject.entries()) {
    GRETA_TRY(run.step());
    pairs.push_back(run.pair(entry.key, entry.value));
  }
  *out = run.sequence(std::move(pairs), Flavor::Generator);
  return {};
}

Status batch(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("batch", arguments, {"linecount", "fill_with"}, 1, slots));
  int64_t count;
  GRETA_TRY(want_int("the number of items", *slots[0], &count));
  std::vector<Value> all, rows, row;
  GRETA_TRY(collect(run, subject, &all));
  for (Value& item : all) {
    GRETA_TRY(run.step());
    if (int64_t(row.size()) == count) rows.push_back(run.sequence(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    const bool fills = slots[1] && !slots[1]->is_none() && int64_t(row.size()) < count;
    if (fills) {
      GRETA_TRY(run.room(uint64_t(count) > UINT64_MAX / 16 ? UINT64_MAX : uint64_t(count) * sizeof(Value)));
      row.resize(size_t(count), *slots[1]);
    }
    rows.push_back(run.sequence(std::move(row)));
  }
  *out = run.sequence(std::move(rows), Flavor::Generator);
  return {};
}

Status slice_filter(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("slice", arguments, {"slices", "fill_with"}, 1, slots));
  int64_t count;
  GRETA_TRY(want_int("the number of slices", *slots[0], &count));
  if (count == 0) return fail(Code::Argument, "division by zero");
  std::vector<Value> all, rows;
  GRETA_TRY(collect(run, subject, &all));
  count = std::max<int64_t>(count, 0);
  const int64_t each = count ? int64_t(all.size()) / count : 0,
                more = count ? int64_t(all.size()) % count : 0;
  for (int64_t i = 0, at = 0; i < count; ++i) {
    GRETA_TRY(run.room(sizeof(Sequence)));
    const int64_t size = each + (i < more);
    std::vector<Value> row(all.begin() + at, all.begin() + at + size);
    if (slots[1] && !slots[1]->is_none() && i >= more) row.push_back(*slots[1]);
    rows.push_back(run.sequence(std::move(row)));
    at += size;
  }
  *out = run.sequence(std::move(rows), Flavor::Generator);
  return {};
}

Status sum(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("sum", arguments, {"attribute", "start"}, 0, slots));
  std::vector<Value> all;
  GRETA_TRY(collect(run, subject, &all));
  Value total = slots[1] ? *slots[1] : Value(0);
  if (total.is_string()) return fail(Code::Argument, "sum() can't sum strings");
  for (Value& item : all) {
    if (slots[0] && !slots[0]->is_none()) GRETA_TRY(nested_attribute(run, item, *slots[0], nullptr, &item));
    GRETA_TRY(add(run, total, item, &total));
  }
  *out = std::move(total);
  return {};
}

constexpr FunctionRow kListFilters[] = {
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"groupby", groupby},
    {"map", map},
    {"select", choose<true, false>},
    {"reject", choose<false, false>},
    {"selectattr", choose<true, true>},
    {"rejectattr", choose<false, true>},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"list", list},
    {"length", length},
    {"count", length},
    {"items", items},
    {"batch", batch},
    {"slice", slice_filter},
    {"sum", sum},
};

}  // namespace

FunctionRows list_filters() { return kListFilters; }

}  // namespace greta::jinja
