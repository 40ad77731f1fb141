#include "selftest/tuning.h"

#include <algorithm>
#include <charconv>

#include "selftest/trial.h"

namespace greta::selftest {

namespace {

constexpr uint32_t kScreeningRounds = 3, kRounds = 13;
// After the first rounds a candidate goes on whose best time is at most so much more than the best of all.
constexpr double kStaysBelow = 1.1;
// A candidate whose first time is so much more than the default's is not timed again.
constexpr uint64_t kSlow = 20;
constexpr uint32_t kMostShape = 1u << 20;  // rows or columns

// The rows that may run the calls, with each number of splits. What is chosen without a table comes first.
struct Way {
  const KernelRow* row;
  uint32_t splits;
};

std::vector<Way> ways_of(const Tunable& launch, const RowFilter& filter) {
  std::vector<const KernelRow*> rows(kernel_table().size());
  rows.resize(find_rows(launch.calls, launch.bucket, filter, rows));
  std::ranges::sort(rows, [](const auto* a, const auto* b) {
    return a->rank != b->rank ? a->rank > b->rank : a < b;  // all are of one table
  });
  const KernelRow* usual = best_row(launch.calls, launch.bucket, filter);
  if (!usual) return {};
  const Call& lead = lead_call(launch.calls);
  const auto can_split = [&](const KernelRow& row) {
    return lead.op == Op::Matmul && row.splits > 1 && row.tile_tokens && lead.slot[kCounters].bytes;
  };
  std::vector<Way> ways = {
      {usual, can_split(*usual) ? choose_splits(launch.calls, *usual, launch.bucket, filter) : 1}};
  for (const KernelRow* row : rows) {
    // Plain kernels are what others are compared with. They are not made to be fast, and a launch may take
    // minutes.
    if (!row->rank) continue;
    const uint32_t most = can_split(*row) ? most_splits(lead, *row, launch.bucket) : 1;
    for (uint32_t splits = 1; splits <= most; splits *= 2) ways.push_back({row, splits});
  }
  std::vector<Way> once;
  for (const Way& way : ways)
    if (std::ranges::none_of(once, [&](const Way& other) {
          return candidate_of(*other.row, other.splits) == candidate_of(*way.row, way.splits);
        }))
      once.push_back(way);
  return once;
}

class Entry {
 public:
  Entry(Trial& trial, const Tunable& launch, const TuneWork& work, const std::function<bool(const char*)>& on)
      : trial_(trial), launch_(launch), work_(work), go_on_(on) {
    entry_.key = entry_key(launch.calls, launch.bucket);
    const Cost cost = lead_of(launch.calls).cost(launch.calls, launch.bucket, 0);
    entry_.bytes = cost.bytes;
    entry_.flops = cost.flops;
  }
  TunedEntry& result() { return entry_; }

  Status run(const RowFilter& filter) {
    const std::vector<Way> ways = ways_of(launch_, filter);
    if (ways.size() < 2) return {};
    GRETA_TRY(trial_.make(launch_.calls, launch_.bucket));
    attempts_.resize(ways.size());
    for (size_t i = 0; i < ways.size(); ++i) GRETA_TRY(prove(ways[i], i, ways[0].row->form));
    for (uint32_t round = 0; round < kRounds; ++round) {
      if (round == kScreeningRounds) screen();
      if (round >= kScreeningRounds && !has_rivals()) break;
      GRETA_TRY(run_round(round));
    }
    return {};
  }

 private:
  Status go_on(const char* kernel) const {
    return go_on_(kernel) ? Status{} : fail(Code::Cancelled, "the tuning was stopped");
  }

  // Runs a candidate for the first time, and notes what came of it.
  Status prove(const Way& way, size_t index, Form usual_form) {
    GRETA_TRY(go_on(way.row->name));
    Measured& noted = entry_.candidates.emplace_back();
    noted.candidate = candidate_of(*way.row, way.splits);
    if (work_.hung && work_.hung(entry_.key, noted.candidate)) {
      noted.verdict = KernelVerdict::Hung;
      return {};
    }
    if (work_.trying) GRETA_TRY(work_.trying(entry_.key, &noted.candidate));
    Attempt& attempt = attempts_[index];
    const Status prepared = trial_.prepare(*way.row, way.splits, &attempt);
    if (prepared.code == Code::Unsupported) {
      clear_error_text();
      noted.verdict = KernelVerdict::Refused;
    } else {
      GRETA_TRY(prepared);
      // The form that a plan makes anyway is mostly made for several launches, or by the one before.
      attempt.pays = way.row->form != Form::F32 && way.row->form != usual_form;
      GRETA_TRY(judge(attempt, &noted));
      if (noted.verdict == KernelVerdict::Right) racing_.push_back(index);
    }
    return work_.trying ? work_.trying(entry_.key, nullptr) : Status{};
  }

  Status judge(Attempt& attempt, Measured* noted) {
    double error = 0;
    const Status proven = trial_.prove(attempt, &error);
    if (!proven.ok()) noted->verdict = KernelVerdict::Hung;  // the device is lost
    GRETA_TRY(proven);
    char text[32];
    format_text(text, sizeof text, "%.2g", error);
    noted->error = text;
    if (!(error <= kMostTrialError)) noted->verdict = KernelVerdict::Wrong;
    uint64_t first = 0;  // it also decides how many launches a sample has
    GRETA_TRY(trial_.time(attempt, &first));
    if (noted == &entry_.candidates[0])
      usual_ns_ = first;
    else if (noted->verdict == KernelVerdict::Right && first / kSlow > usual_ns_)
      noted->verdict = KernelVerdict::Slow;
    return {};
  }

  // Each round begins with another candidate.
  Status run_round(uint32_t round) {
    for (size_t i = 0; i < racing_.size(); ++i) {
      const size_t index = racing_[(i + round) % racing_.size()];
      Measured& noted = entry_.candidates[index];
      GRETA_TRY(go_on(noted.candidate.kernel.c_str()));
      uint64_t ns = 0;
      GRETA_TRY(trial_.time(attempts_[index], &ns));
      noted.ns.push_back(ns);
    }
    return {};
  }

  // Whether the default is not the only one left.
  bool has_rivals() const {
    return std::ranges::any_of(racing_, [](size_t index) { return index > 0; });
  }

  // Those that cannot win any more leave. What is chosen without a table always stays.
  void screen() {
    uint64_t best = ~uint64_t(0);
    const auto fastest = [&](size_t index) { return *std::ranges::min_element(entry_.candidates[index].ns); };
    for (const size_t index : racing_) best = std::min(best, fastest(index));
    std::erase_if(racing_, [&](size_t index) {
      return index > 0 && double(fastest(index)) > double(best) * kStaysBelow;
    });
  }

  Trial& trial_;
  const Tunable& launch_;
  const TuneWork& work_;
  const std::function<bool(const char*)>& go_on_;
  TunedEntry entry_;
  std::vector<Attempt> attempts_;  // by candidate
  std::vector<size_t> racing_;     // candidates that are still timed
  uint64_t usual_ns_ = ~uint64_t(0);
};

void count(const TunedEntry& entry, TuneTally* tally) {
  for (const Measured& each : entry.candidates) {
    uint32_t* const of[] = {&tally->right, &tally->wrong, &tally->refused, &tally->slow, &tally->hung};
    ++*of[size_t(each.verdict)];
  }
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string::npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// "14336x4096".
bool read_sizes(const std::string& word, Tensor* out) {
  const char* const end = word.data() + word.size();
  const auto rows = std::from_chars(word.data(), end, out->n);
  if (rows.ec != std::errc() || rows.ptr == end || *rows.ptr != 'x') return false;
  const auto depth = std::from_chars(rows.ptr + 1, end, out->depth);
  return depth.ec == std::errc() && depth.ptr == end;
}

// "q4_k 14336x4096 gate".
bool read_shape(const std::string& line, const RowFilter& filter, Tensor* out, bool* gated) {
  Tensor& weight = *out;
  const std::vector<std::string> words = words_of(line);
  *gated = words.size() == 3 && words[2] == "gate";
  if (words.size() != (*gated ? 3 : 2) || !quant_from_name(words[0].c_str(), &weight.type) ||
      !read_sizes(words[1], &weight) || !weight.n || !weight.depth || weight.n > kMostShape ||
      weight.depth > kMostShape || weight.depth % quant_info(weight.type).block)
    return false;
  weight.layout = preferred_layout(weight.type, filter);
  return true;
}

}  // namespace

Tunable product_of(const Tensor& weight, bool gated, uint32_t tokens) {
  static const Buffer kPlaces[6];
  const uint64_t in = uint64_t(tokens) * weight.depth * sizeof(float),
                 made = uint64_t(tokens) * weight.n * sizeof(float);
  const CallMaker make{{&kPlaces[0], 0, sizeof(StepState)},
                       {&kPlaces[1], 0, kCounterCount * sizeof(uint32_t)}};
  const Slice x{&kPlaces[2], 0, in}, y{&kPlaces[3], 0, made};
  Tunable tunable{{make.matmul(weight, x, y)}, tokens, 1};
  if (gated) {
    const Slice up{&kPlaces[4], 0, made};
    tunable.calls.push_back(make.matmul(weight, x, up));
    tunable.calls.push_back(make.gate(y, up, {&kPlaces[5], 0, made}, weight.n, 0));
  }
  return tunable;
}

Status read_shapes(const Device& device, const char* text, std::span<const uint32_t> tokens,
                   std::vector<Tunable>* out) {
  const std::string all = text;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    Tensor weight;
    bool gated = false;
    if (!read_shape(line, {&device.info(), false}, &weight, &gated))
      return fail(Code::Argument, "\"%.80s\" is no shape, expected a type and rows x columns", line.c_str());
    for (const uint32_t some : tokens) out->push_back(product_of(weight, gated, some));
  }
  return {};
}

Status tune(Device& device, const RefusedKernels* refused, std::vector<Tunable> launches,
            const TuneWork& work, TuningTable* table, TuneTally* tally) {
  const uint64_t begin = now_ns();
  const RowFilter filter{&device.info(), false, refused};
  *tally = {};
  std::ranges::sort(launches, [](const Tunable& a, const Tunable& b) {
    return a.weight != b.weight ? a.weight > b.weight
                                : entry_key(a.calls, a.bucket) < entry_key(b.calls, b.bucket);
  });
  const uint32_t entries = uint32_t(launches.size());
  uint32_t done = 0;
  Status stopped;
  Trial trial(device);
  GRETA_TRY(trial.open());
  for (const Tunable& launch : launches) {
    ++done;
    const std::string key = entry_key(launch.calls, launch.bucket);
    if (table->entry(key) && !work.again) {
      ++tally->there;
      continue;
    }
    const bool late = work.budget_ns && now_ns() - begin >= work.budget_ns;
    if (late || !can_try(launch.calls)) {
      ++tally->left;
      continue;
    }
    const std::function<bool(const char*)> go_on = [&](const char* kernel) {
      return !work.go_on || work.go_on({key.c_str(), kernel, done - 1, entries});
    };
    Entry entry(trial, launch, work, go_on);
    const Status status = entry.run(filter);
    if (status.code == Code::Unsupported) {  // of the operands: too large, or without a plain kernel
      clear_error_text();
      ++tally->left;
      continue;
    }
    if (!status.ok()) {
      stopped = status;
      break;
    }
    count(entry.result(), tally);
    if (entry.result().candidates.empty()) continue;  // there is nothing to choose from
    table->put(std::move(entry.result()));
    ++tally->made;
    if (work.save) GRETA_TRY(work.save());
  }
  for (const TunedEntry& entry : table->entries()) {
    ++tally->entries;
    tally->changed += choose_candidate(entry) != 0;
  }
  return stopped;
}

}  // namespace greta::selftest
