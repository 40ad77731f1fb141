// The text of a table. Its fields have a fixed order, so that it is read without building anything of what a
// damaged or hostile text claims.
#include <algorithm>
#include <cstring>

#include "tune/table.h"

namespace greta {

namespace {

constexpr uint64_t kFormat = 1;
constexpr size_t kMostBytes = 64u << 20, kMostEntries = 1u << 16, kMostCandidates = 512, kMostSamples = 256,
                 kMostTextBytes = 1024;
constexpr char kHead[] = "{\"greta_tuning\":", kEntry[] = "{\"entry\":", kCandidate[] = "{\"kernel\":",
               kSum[] = "{\"checksum\":";

void add_text(std::string* out, std::string_view text) {
  *out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') *out += '\\';
    char escape[8];
    if (uint8_t(c) < 0x20) {
      format_text(escape, sizeof escape, "\\u%04x", unsigned(uint8_t(c)));
      *out += escape;
    } else {
      *out += c;
    }
  }
  *out += '"';
}

void add_field(std::string* out, const char* name, std::string_view text) {
  *out += ",\"" + std::string(name) + "\":";
  add_text(out, text);
}
void add_field(std::string* out, const char* name, uint64_t number) {
  *out += ",\"" + std::string(name) + "\":" + std::to_string(number);
}

std::string sum_of(std::string_view text) {
  char hex[17];
  format_text(hex, sizeof hex, "%016llx", (unsigned long long)checksum(text.data(), text.size()));
  return hex;
}

// Reads one line from left to right. After the first thing that is not as expected nothing is read any more.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}
  bool good() const { return good_; }
  bool ended() const { return good_ && rest_.empty(); }

  void literal(std::string_view expected) {
    if (!good_ || !rest_.starts_with(expected)) return void(good_ = false);
    rest_.remove_prefix(expected.size());
  }
  template <class Value>
  void field(const char* name, Value* out) {
    literal(",\"");
    literal(name);
    literal("\":");
    value(out);
  }
  void value(uint64_t* out) {
    size_t digits = 0;
    *out = 0;
    while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') ++digits;
    if (!good_ || digits == 0 || digits > 18) return void(good_ = false);
    for (const char digit : rest_.substr(0, digits)) *out = *out * 10 + uint64_t(digit - '0');
    rest_.remove_prefix(digits);
  }
  void value(uint32_t* out) {
    uint64_t wide = 0;
    value(&wide);
    if (wide > UINT32_MAX) good_ = false;
    *out = uint32_t(wide);
  }
  void value(std::string* out) {
    out->clear();
    literal("\"");
    while (good_ && !rest_.empty() && rest_[0] != '"' && out->size() <= kMostTextBytes) *out += character();
    literal("\"");
  }
  void value(std::vector<uint64_t>* out) {
    out->clear();
    literal("[");
    while (good_ && !rest_.starts_with(']') && out->size() < kMostSamples) {
      if (!out->empty()) literal(",");
      value(&out->emplace_back());
    }
    literal("]");
  }

 private:
  char character() {
    char c = rest_[0];
    rest_.remove_prefix(1);
    if (c != '\\') return c;
    if (rest_.starts_with('"') || rest_.starts_with('\\')) {
      c = rest_[0];
      rest_.remove_prefix(1);
      return c;
    }
    literal("u00");
    uint32_t code = 0;
    for (int i = 0; i < 2; ++i) {
      const std::string_view digits = "0123456789abcdef";
      const size_t digit = rest_.empty() ? std::string_view::npos : digits.find(rest_[0]);
      if (!good_ || digit == std::string_view::npos) return good_ = false, ' ';
      code = code * 16 + uint32_t(digit);
      rest_.remove_prefix(1);
    }
    return char(code);
  }

  std::string_view rest_;
  bool good_ = true;
};

bool read_head(std::string_view line, TableOf* out) {
  LineReader in(line);
  uint64_t format = 0;
  in.literal(kHead);
  in.value(&format);
  in.field("backend", &out->backend);
  in.field("device", &out->device);
  in.field("arch", &out->arch);
  in.field("driver", &out->driver);
  in.field("units", &out->units);
  in.field("kernels", &out->kernels);
  in.literal("}");
  return in.ended();
}

bool read_entry(std::string_view line, TunedEntry* out, uint32_t* candidates) {
  LineReader in(line);
  uint64_t chosen = 0;  // for people: it is chosen again from the samples
  in.literal(kEntry);
  in.value(&out->key);
  in.field("bytes", &out->bytes);
  in.field("flops", &out->flops);
  in.field("candidates", candidates);
  in.field("chosen", &chosen);
  in.literal("}");
  return in.ended() && *candidates >= 1 && *candidates <= kMostCandidates;
}

bool read_candidate(std::string_view line, Measured* out) {
  LineReader in(line);
  std::string verdict;
  in.literal(kCandidate);
  in.value(&out->candidate.kernel);
  in.field("target", &out->candidate.target);
  in.field("tile", &out->candidate.tile);
  in.field("tile_tokens", &out->candidate.tile_tokens);
  in.field("splits", &out->candidate.splits);
  in.field("verdict", &verdict);
  in.field("error", &out->error);
  in.field("ns", &out->ns);
  in.literal("}");
  for (size_t v = 0; v < size_t(KernelVerdict::count); ++v) {
    if (verdict != verdict_name(KernelVerdict(v))) continue;
    out->verdict = KernelVerdict(v);
    return in.ended();
  }
  return false;
}

// The lines of a text, each of which ends with a newline.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  uint32_t number() const { return number_; }
  bool more() const { return !rest_.empty(); }
  std::string_view next() {
    ++number_;
    const size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end, rest_.size() - 1) + 1);
    return line;
  }

 private:
  std::string_view rest_;
  uint32_t number_ = 0;
};

Status damaged(uint32_t line) {
  return fail(Code::File, "the table is damaged: line %u is not as it was written", line);
}

// Cuts the checksum off, which is the last line, and compares it.
Status check_sum(std::string_view* text) {
  const size_t at = text->rfind(kSum);
  if (at == std::string_view::npos || (at > 0 && (*text)[at - 1] != '\n'))
    return fail(Code::File, "the table is damaged: it has no checksum at its end");
  const std::string_view sums = text->substr(at);
  *text = text->substr(0, at);
  if (sums == std::string(kSum) + "\"" + sum_of(*text) + "\"}\n") return {};
  return fail(Code::File, "the table is damaged: its checksum is another");
}

Status check_format(std::string_view text) {
  LineReader in(text.substr(0, text.find('\n')));
  uint64_t format = 0;
  in.literal(kHead);
  in.value(&format);
  if (!in.good()) return fail(Code::File, "this is no tuning table: its first line is not that of one");
  if (format == kFormat) return {};
  return fail(Code::File, "the table has format %llu, this library reads %llu", (unsigned long long)format,
              (unsigned long long)kFormat);
}

}  // namespace

std::string TuningTable::text() const {
  std::string out = kHead + std::to_string(kFormat);
  add_field(&out, "backend", of.backend);
  add_field(&out, "device", of.device);
  add_field(&out, "arch", of.arch);
  add_field(&out, "driver", of.driver);
  add_field(&out, "units", of.units);
  add_field(&out, "kernels", of.kernels);
  out += "}\n";
  for (const TunedEntry& entry : entries_) {
    out += kEntry;
    add_text(&out, entry.key);
    add_field(&out, "bytes", entry.bytes);
    add_field(&out, "flops", entry.flops);
    add_field(&out, "candidates", entry.candidates.size());
    add_field(&out, "chosen", choose_candidate(entry));
    out += "}\n";
    for (const Measured& each : entry.candidates) {
      out += kCandidate;
      add_text(&out, each.candidate.kernel);
      add_field(&out, "target", each.candidate.target);
      add_field(&out, "tile", each.candidate.tile);
      add_field(&out, "tile_tokens", each.candidate.tile_tokens);
      add_field(&out, "splits", each.candidate.splits);
      add_field(&out, "verdict", verdict_name(each.verdict));
      add_field(&out, "error", each.error);
      out += ",\"ns\":[";
      for (size_t i = 0; i < each.ns.size(); ++i) out += (i ? "," : "") + std::to_string(each.ns[i]);
      out += "]}\n";
    }
  }
  return out + kSum + "\"" + sum_of(out) + "\"}\n";
}

Status TuningTable::read(std::string_view text, TuningTable* out) {
  *out = {};
  if (text.size() > kMostBytes)
    return fail(Code::File, "a tuning table of %zu bytes, at most %zu", text.size(), kMostBytes);
  GRETA_TRY(check_format(text));
  GRETA_TRY(check_sum(&text));
  TuningTable table;
  Lines lines(text);
  if (!read_head(lines.next(), &table.of)) return damaged(lines.number());
  while (lines.more()) {
    TunedEntry entry;
    uint32_t candidates = 0;
    if (table.entries_.size() == kMostEntries || !read_entry(lines.next(), &entry, &candidates) ||
        table.entry(entry.key))
      return damaged(lines.number());
    for (uint32_t i = 0; i < candidates; ++i)
      if (!lines.more() || !read_candidate(lines.next(), &entry.candidates.emplace_back()))
        return damaged(lines.number());
    table.put(std::move(entry));
  }
  *out = std::move(table);
  return {};
}

}  // namespace greta
