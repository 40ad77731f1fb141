// Measures whole steps of several sequences through greta.h.
//
//   greta-bench-steps -m FILE [--device D] [--sequences 1,2,4] [--depth TOKENS] [-n STEPS] [--fork]
//   [--profile]
//
// Each sequence first holds `depth` tokens. A step then feeds one token of each sequence by greta_batch_eval
// and reads the logits of all. With --fork the sequences share the pages of those tokens. --profile runs one
// more step, in which the device draws, and times each of its kernels by itself.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/handles.h"
#include "platform/platform.h"

using namespace greta;

namespace {

struct Options {
  const char* model = nullptr;
  const char* device = nullptr;
  std::vector<uint32_t> sequences = {1, 2, 4, 8, 16, 32, 64};
  uint32_t depth = 128, steps = 64;
  bool fork = false, profile = false;
};

Status checked(greta_status status) {
  return status ? fail(Code(status), "%s", greta_error_text()) : Status{};
}

struct Opened {
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  ~Opened() {
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
};

// The sequences of one measurement, on an executor of their own.
class Group {
 public:
  Group(greta_model* model, const Options& options, uint32_t count)
      : model_(model), options_(options), count_(count), vocab_(model->model.shape.vocab) {}
  ~Group() {
    for (greta_session* session : sessions_) greta_session_close(session);
    greta_executor_close(executor_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Status open() {
    greta_executor_options sizes = {};
    sizes.struct_size = sizeof sizes;
    sizes.context = uint32_t(round_up(options_.depth + options_.steps + 8, kPageTokens));
    sizes.sequences = count_;
    sizes.cache_tokens = sizes.context * count_;
    sizes.output_rows = count_ > 8 ? 512 : 8;
    GRETA_TRY(checked(greta_executor_open(model_, &sizes, &executor_)));
    greta_session_options shared = {};
    shared.struct_size = sizeof shared;
    shared.executor = executor_;
    for (uint32_t i = 0; i < count_; ++i) {
      greta_session* session = nullptr;
      const bool first = i == 0 || !options_.fork;
      GRETA_TRY(checked(first ? greta_session_open(model_, &shared, &session)
                              : greta_session_fork(sessions_[0], &session)));
      sessions_.push_back(session);
      if (first && options_.depth) GRETA_TRY(fill(session, i));
    }
    return {};
  }

  // Runs `steps` steps and gives the nanoseconds of each.
  Status run(uint32_t steps, std::vector<uint64_t>* ns) {
    std::vector<int32_t> next(count_);
    std::vector<greta_batch_item> items(count_);
    for (uint32_t i = 0; i < count_; ++i) items[i] = {sessions_[i], &next[i], 1, nullptr};
    for (uint32_t step = 0; step < steps; ++step) {
      for (uint32_t i = 0; i < count_; ++i) next[i] = token(i, options_.depth + step);
      const uint64_t start = now_ns();
      GRETA_TRY(checked(greta_batch_eval(items.data(), items.size())));
      ns->push_back(now_ns() - start);
    }
    return {};
  }

  // Prints what each kernel of a step takes. Sequence i of the executor is that of session i.
  Status profile() {
    std::vector<Executor::Row> rows;
    for (uint32_t i = 0; i < count_; ++i)
      rows.push_back({uint32_t(token(i, 0)), greta_session_position(sessions_[i]), i, true});
    const auto print = [](void*, const Executor::Stage& s) {
      printf("  %-18s %-28s %5u %9.1f us %8.1f GB/s %8.2f TFLOP/s\n", s.part, s.kernel, s.launches,
             double(s.ns) / 1e3, double(s.bytes) / double(s.ns), double(s.flops) / double(s.ns) / 1e3);
    };
    Executor& executor = *executor_->shared->executor;
    GRETA_TRY(
        executor.profile(rows, true, print, nullptr));  // the first compiles kernels, and times them cold
    printf("\n");
    return executor.profile(rows, true, print, nullptr);
  }

 private:
  int32_t token(uint32_t sequence, uint32_t position) const {
    return int32_t((uint64_t(position) * 7919 + sequence * 104729 + 17) % vocab_);
  }
  Status fill(greta_session* session, uint32_t sequence) {
    std::vector<int32_t> tokens(options_.depth);
    for (uint32_t i = 0; i < options_.depth; ++i) tokens[i] = token(sequence, i);
    return checked(greta_session_eval(session, tokens.data(), tokens.size(), GRETA_ROWS_NONE, nullptr));
  }

  greta_model* model_;
  const Options& options_;
  uint32_t count_, vocab_;
  greta_executor* executor_ = nullptr;
  std::vector<greta_session*> sessions_;
};

Status measure(greta_model* model, const Options& options, uint32_t count) {
  Group group(model, options, count);
  GRETA_TRY(group.open());
  std::vector<uint64_t> ns;
  GRETA_TRY(group.run(3, &ns));  // compiles kernels and warms the device
  ns.clear();
  GRETA_TRY(group.run(options.steps, &ns));
  std::sort(ns.begin(), ns.end());
  const double median = double(ns[ns.size() / 2]) / 1e6;
  printf("%4u sequences at %u: eval %8.3f ms a step, %9.1f t/s\n", count, options.depth, median,
         count / median * 1e3);
  if (options.profile) GRETA_TRY(group.profile());
  fflush(stdout);
  return {};
}

Status run(const Options& options) {
  Opened opened;
  greta_runtime_options device = {};
  device.struct_size = sizeof device;
  device.device = options.device;
  GRETA_TRY(checked(greta_runtime_open(&device, &opened.runtime)));
  greta_source source = {};
  source.struct_size = sizeof source;
  source.path = options.model;
  greta_model_options load = {};
  load.struct_size = sizeof load;
  load.source = &source;
  GRETA_TRY(checked(greta_model_open(opened.runtime, &load, &opened.model)));
  for (const uint32_t count : options.sequences) GRETA_TRY(measure(opened.model, options, count));
  return {};
}

bool read_options(int count, char** words, Options* out) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--profile")
      out->profile = true;
    else if (word == "--fork")
      out->fork = true;
    else if (i + 1 == count)
      return false;
    else if (word == "-m")
      out->model = words[++i];
    else if (word == "--device")
      out->device = words[++i];
    else if (word == "--depth")
      out->depth = uint32_t(atoi(words[++i]));
    else if (word == "-n")
      out->steps = uint32_t(atoi(words[++i]));
    else if (word == "--sequences") {
      out->sequences.clear();
      for (const char* at = words[++i]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : nullptr)
        out->sequences.push_back(uint32_t(atoi(at)));
    } else
      return false;
  }
  return out->model && out->steps && std::ranges::find(out->sequences, 0u) == out->sequences.end();
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!read_options(count, words, &options)) {
    fprintf(stderr,
            "greta-bench-steps -m FILE [--device D] [--sequences 1,2,4] [--depth TOKENS] [-n STEPS] [--fork] "
            "[--profile]\n");
    return 2;
  }
  if (run(options).ok()) return 0;
  fprintf(stderr, "%s\n", error_text());
  return 1;
}
