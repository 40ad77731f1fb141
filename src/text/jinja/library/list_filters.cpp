// Filters over lists and dicts.
#include <algorithm>
#include <charconv>

#include "text/jinja/library/library.h"

namespace greta::jinja {

// "a.b.0" means a.b[0], an integer is an index, None is the value itself.
Status nested_attribute(Run& run, const Value& value, const Value& path, const Value* otherwise, Value* out) {
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
    if (otherwise && now.is_undefined()) now = *otherwise;
  }
  *out = std::move(now);
  return {};
}

namespace {

// ---- sorting ----------------------------------------------------------------------------------

// An item and the keys by which it is sorted or compared. Keys are attributes of the item; texts are in lower
// case if case does not matter.
struct Keyed {
  Value item;
  std::vector<Value> keys;
  bool listed = false;  // keys compare as lists do in Python, where equal elements need no order
};

Status fold(Run& run, bool case_sensitive, Value* key) {
  if (case_sensitive || !key->is_string()) return {};
  GRETA_TRY(run.room(key->as_string().size()));
  GRETA_TRY(run.step(key->as_string().size() / 4));
  *key = run.text(to_lower(key->as_string()));
  return {};
}

// Pairs each item with the attributes `paths`, or with itself if there are none.
struct Keying {
  std::vector<Value> paths;
  bool case_sensitive;
  bool listed = false;
  const Value* otherwise = nullptr;  // the key of an item without the attribute
};

Status key_items(const Call& call, const Keying& by, std::vector<Keyed>* out) {
  std::vector<Value> items;
  GRETA_TRY(collect(call.run, call.self, &items));
  for (const Value& item : items) {
    Keyed keyed{item, {}, by.listed};
    if (by.paths.empty()) keyed.keys.push_back(item);
    for (const Value& path : by.paths)
      GRETA_TRY(nested_attribute(call.run, item, path, by.otherwise, &keyed.keys.emplace_back()));
    for (Value& key : keyed.keys) GRETA_TRY(fold(call.run, by.case_sensitive, &key));
    GRETA_TRY(call.run.room(sizeof(Keyed) + keyed.keys.size() * sizeof(Value)));
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

// A merge sort of our own, since comparing may fail. Equal items keep their order, also with `reverse`.
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

Status give_sorted(Call& call, bool reverse, std::vector<Keyed>&& keyed) {
  GRETA_TRY(sort_keyed(call.run, reverse, &keyed));
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (Keyed& each : keyed) items.push_back(std::move(each.item));
  return call.give_list(std::move(items));
}

std::vector<Value> path_of(const Value* attribute) {
  return attribute ? std::vector<Value>{*attribute} : std::vector<Value>{};
}

Status sort(Call& call) {
  Keying by{path_of(call[2]), call.is_true(1), true};
  if (call[2] && call[2]->is_string()) {  // several attributes between commas
    by.paths.clear();
    std::string_view rest = call.text(2);
    for (size_t comma; (comma = rest.find(',')) != rest.npos; rest.remove_prefix(comma + 1))
      by.paths.push_back(call.run.text(rest.substr(0, comma)));
    by.paths.push_back(call.run.text(rest));
  }
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(call, by, &keyed));
  return give_sorted(call, call.integer(0) != 0, std::move(keyed));
}

Status dictsort(Call& call) {
  const Value& self = call.self;
  if (self.is_undefined()) return undefined_error(self);
  if (!self.is_dict()) return fail(Code::Argument, "dictsort takes a dict, not %s", self.type_name());
  const std::string_view by = call.text(1, "key");
  if (by != "key" && by != "value") return fail(Code::Argument, "dictsort sorts by \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const Value::Entry& entry : self.entries()) {
    GRETA_TRY(call.run.room(sizeof(Keyed) + sizeof(Value)));
    keyed.push_back({call.run.pair(entry.key, entry.value), {by == "key" ? entry.key : entry.value}});
    GRETA_TRY(fold(call.run, call.is_true(0), &keyed.back().keys[0]));
  }
  return give_sorted(call, call.integer(2) != 0, std::move(keyed));
}

Status unique(Call& call) {
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(call, {path_of(call[1]), call.is_true(0)}, &keyed));
  Dict seen(&call.run.budget);
  std::vector<Value> items;
  for (Keyed& each : keyed) {
    Value& key = each.keys[0];
    if (key.is_undefined())
      key = call.run.pair(Value(nullptr), Value("undefined"));  // undefined is only equal to undefined
    if (!is_hashable(key)) return fail(Code::Argument, "unhashable type: '%s'", key.type_name());
    GRETA_TRY(call.run.step(1 + key.as_string().size() / 16));
    if (seen.find(key)) continue;
    seen.set(std::move(key), Value(true));
    items.push_back(std::move(each.item));
  }
  return call.give_list(std::move(items), Flavor::Generator);
}

template <bool Largest>
Status extreme(Call& call) {
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(call, {path_of(call[1]), call.is_true(0)}, &keyed));
  if (keyed.empty()) return call.give(call.run.undefined("No aggregated item, sequence was empty."));
  const Keyed* best = &keyed[0];
  for (const Keyed& each : std::span(keyed).subspan(1)) {
    bool better;
    GRETA_TRY(Largest ? keys_less(call.run, *best, each, &better)
                      : keys_less(call.run, each, *best, &better));
    if (better) best = &each;
  }
  return call.give(best->item);
}

Status groupby(Call& call) {
  Run& run = call.run;
  std::vector<Keyed> keyed;
  GRETA_TRY(key_items(call, {path_of(call[0]), call.is_true(2), false, call[1]}, &keyed));
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
    Value key;  // that of the group's first item, before case was folded
    GRETA_TRY(nested_attribute(run, keyed[start].item, *call[0], call[1], &key));
    groups.push_back(run.sequence({key, run.sequence(std::move(members))}, Flavor::Group));
  }
  return call.give_list(std::move(groups));
}

// ---- map, select, reject ----------------------------------------------------------------------

Arguments without(const Arguments& arguments, size_t first) {
  Arguments rest;
  rest.places.assign(arguments.places.begin() + std::ptrdiff_t(std::min(first, arguments.places.size())),
                     arguments.places.end());
  rest.names = arguments.names;
  return rest;
}

// Maps each item by the name of a filter and its arguments, or by an attribute.
Status map(Call& call) {
  Run& run = call.run;
  std::vector<Value> items;
  if (call.self.is_true()) GRETA_TRY(collect(run, call.self, &items));  // None, for one, has no items
  const auto& [places, names] = call.arguments;
  const Value *attribute = nullptr, *otherwise = nullptr;
  for (const auto& [name, value] : names) {
    if (!places.empty()) break;
    if (name != "attribute" && name != "default")
      return fail(Code::Argument, "map has no argument \"%s\"", name.c_str());
    (name == "default" ? otherwise : attribute) = &value;
  }
  if (otherwise && otherwise->is_none()) otherwise = nullptr;
  if (places.empty() && !attribute && !items.empty())
    return fail(Code::Argument, "map needs the name of a filter, or an attribute");
  const Arguments rest = without(call.arguments, 1);
  std::string name;
  if (!places.empty()) GRETA_TRY(to_text(run, places[0], &name));
  for (Value& item : items) {
    Value made;
    GRETA_TRY(attribute ? nested_attribute(run, item, *attribute, otherwise, &made)
                        : run.apply(Form::Filter, name, item, rest, &made));
    item = std::move(made);
  }
  return call.give_list(std::move(items), Flavor::Generator);
}

template <bool Keep, bool ByAttribute>
Status choose(Call& call) {
  Run& run = call.run;
  const std::vector<Value>& places = call.arguments.places;
  std::vector<Value> items, chosen;
  if (call.self.is_true()) GRETA_TRY(collect(run, call.self, &items));
  const size_t test_at = ByAttribute ? 1 : 0;
  if (places.size() < test_at && !items.empty())
    return fail(Code::Argument, "the name of an attribute is missing");
  const Arguments rest = without(call.arguments, test_at + 1);
  const bool by_test = places.size() > test_at;
  std::string name;
  if (by_test) GRETA_TRY(to_text(run, places[test_at], &name));
  for (Value& item : items) {
    Value tested = item, verdict;
    if (ByAttribute) GRETA_TRY(nested_attribute(run, item, places[0], nullptr, &tested));
    if (by_test) GRETA_TRY(run.apply(Form::Test, name, tested, rest, &verdict));
    if ((by_test ? verdict : tested).is_true() == Keep) chosen.push_back(std::move(item));
  }
  return call.give_list(std::move(chosen), Flavor::Generator);
}

// ---- parts of a list --------------------------------------------------------------------------

Status first(Call& call) {
  Cursor cursor;
  GRETA_TRY(start(call.self, &cursor));
  if (!cursor.next(&call.run.budget, call.result))
    *call.result = call.run.undefined("No first item, sequence was empty.");
  return {};
}

bool is_generator(const Value& value) {
  const Sequence* sequence = sequence_of(value);
  return sequence && sequence->flavor == Flavor::Generator;
}

Status last(Call& call) {
  if (is_generator(call.self)) return fail(Code::Argument, "'generator' object is not reversible");
  std::vector<Value> items;
  GRETA_TRY(collect(call.run, call.self, &items));
  return call.give(items.empty() ? call.run.undefined("No last item, sequence was empty.") : items.back());
}

Status reverse(Call& call) {
  std::vector<Value> items;
  GRETA_TRY(collect(call.run, call.self, &items));
  std::reverse(items.begin(), items.end());
  if (!call.self.is_string()) {
    const bool list = is_generator(call.self) || call.self.is_undefined();
    return call.give_list(std::move(items), list ? Flavor::List : Flavor::Generator);
  }
  std::string text;
  for (const Value& item : items) text += item.as_string();
  return call.give_text(std::move(text));
}

Status list(Call& call) {
  std::vector<Value> items;
  GRETA_TRY(collect(call.run, call.self, &items));
  return call.give_list(std::move(items));
}

Status length(Call& call) {
  int64_t count;
  GRETA_TRY(length_of(call.self, &count));
  return call.give(count);
}

Status items(Call& call) {
  if (!call.self.is_dict() && !call.self.is_undefined())
    return fail(Code::Argument, "Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const Value::Entry& entry : call.self.entries()) {
    GRETA_TRY(call.run.step());
    pairs.push_back(call.run.pair(entry.key, entry.value));
  }
  return call.give_list(std::move(pairs), Flavor::Generator);
}

Status batch(Call& call) {
  Run& run = call.run;
  const int64_t count = call.integer(0);
  std::vector<Value> all, rows, row;
  GRETA_TRY(collect(run, call.self, &all));
  for (Value& item : all) {
    GRETA_TRY(run.step());
    if (int64_t(row.size()) == count) rows.push_back(run.sequence(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    if (call[1] && int64_t(row.size()) < count) {
      GRETA_TRY(run.room(uint64_t(count) > UINT64_MAX / 16 ? UINT64_MAX : uint64_t(count) * sizeof(Value)));
      row.resize(size_t(count), *call[1]);
    }
    rows.push_back(run.sequence(std::move(row)));
  }
  return call.give_list(std::move(rows), Flavor::Generator);
}

Status slice_filter(Call& call) {
  if (call.integer(0) == 0) return fail(Code::Argument, "division by zero");
  const int64_t count = std::max<int64_t>(call.integer(0), 0);
  std::vector<Value> all, rows;
  GRETA_TRY(collect(call.run, call.self, &all));
  const int64_t each = count ? int64_t(all.size()) / count : 0,
                more = count ? int64_t(all.size()) % count : 0;
  for (int64_t i = 0, at = 0; i < count; ++i) {
    GRETA_TRY(call.run.room(sizeof(Sequence)));
    const int64_t size = each + (i < more);
    std::vector<Value> row(all.begin() + at, all.begin() + at + size);
    if (call[1] && i >= more) row.push_back(*call[1]);
    rows.push_back(call.run.sequence(std::move(row)));
    at += size;
  }
  return call.give_list(std::move(rows), Flavor::Generator);
}

Status sum(Call& call) {
  std::vector<Value> all;
  GRETA_TRY(collect(call.run, call.self, &all));
  Value total = call[1] ? *call[1] : Value(0);
  if (total.is_string()) return fail(Code::Argument, "sum() can't sum strings");
  for (Value& item : all) {
    if (call[0]) GRETA_TRY(nested_attribute(call.run, item, *call[0], nullptr, &item));
    GRETA_TRY(add(call.run, total, item, &total));
  }
  return call.give(std::move(total));
}

constexpr FunctionRow kListFilters[] = {
    {"sort", sort, 0, {{"reverse", kFlag}, {"case_sensitive"}, {"attribute", kAnyOrNone}}},
    {"dictsort", dictsort, 0, {{"case_sensitive"}, {"by"}, {"reverse", kFlag}}},
    {"unique", unique, 0, {{"case_sensitive"}, {"attribute", kAnyOrNone}}},
    {"min", extreme<false>, 0, {{"case_sensitive"}, {"attribute", kAnyOrNone}}},
    {"max", extreme<true>, 0, {{"case_sensitive"}, {"attribute", kAnyOrNone}}},
    {"groupby", groupby, 1, {{"attribute"}, {"default", kAnyOrNone}, {"case_sensitive"}}},
    {"map", map, kReadsArguments},
    {"select", choose<true, false>, kReadsArguments},
    {"reject", choose<false, false>, kReadsArguments},
    {"selectattr", choose<true, true>, kReadsArguments},
    {"rejectattr", choose<false, true>, kReadsArguments},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"list", list},
    {"length", length},
    {"count", length},
    {"items", items},
    {"batch", batch, 1, {{"linecount", kInt}, {"fill_with", kAnyOrNone}}},
    {"slice", slice_filter, 1, {{"slices", kInt}, {"fill_with", kAnyOrNone}}},
    {"sum", sum, 0, {{"attribute", kAnyOrNone}, {"start"}}},
};

}  // namespace

FunctionRows list_filters() { return kListFilters; }

}  // namespace greta::jinja
