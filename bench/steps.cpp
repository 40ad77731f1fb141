// Measures whole steps of several sequences through greta.h.
//
//   greta-bench-steps -m FILE [--device D] [--sequences 1,2,4] [--depth TOKENS] [-n STEPS] [--fork]
//   [--apart] [--profile]
//
// Each sequence first holds `depth` tokens; with --fork they share the pages of these. With --apart each
// of them reads the shared pages by itself, as it does where too little would be saved. A step then feeds one
// token of each sequence: `eval` by greta_batch_eval, which gives the host the logits of all, and `generate`
// by greta_batch_generate, where the device draws. `host` is the time that the host takes for one of these
// steps. --profile runs one more, and times each of its kernels by itself.
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
  bool fork = false, apart = false, profile = false;
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
    GRETA_TRY(checked(greta_executor_open(model_, &sizes, &executor_)));
    if (options_.apart) executor_->shared->executor->set_pages_saved(~0u);
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

  // The median time of a step by greta_batch_eval.
  Status eval(uint32_t steps, double* ms) {
    std::vector<int32_t> next(count_);
    std::vector<greta_batch_item> items(count_);
    std::vector<uint64_t> ns;
    for (uint32_t i = 0; i < count_; ++i) items[i] = {sessions_[i], &next[i], 1, nullptr};
    for (uint32_t step = 0; step < steps; ++step) {
      for (uint32_t i = 0; i < count_; ++i) next[i] = token(i, options_.depth + step);
      const uint64_t start = now_ns();
      GRETA_TRY(checked(greta_batch_eval(items.data(), items.size())));
      ns.push_back(now_ns() - start);
    }
    std::sort(ns.begin(), ns.end());
    *ms = double(ns[ns.size() / 2]) / 1e6;
    return back();
  }

  // The mean time of a step by greta_batch_generate, without the first.
  Status generate(uint32_t steps, double* ms) {
    std::vector<int32_t> next(count_);
    std::vector<greta_generate_item> items(count_);
    greta_generate_options write = {};
    write.struct_size = sizeof write;
    write.max_tokens = steps + 1;
    write.ignore_end = 1;
    greta_generate_result result = {};
    result.struct_size = sizeof result;
    for (uint32_t i = 0; i < count_; ++i) {
      next[i] = token(i, options_.depth);
      items[i].session = sessions_[i];
      items[i].tokens = &next[i];
      items[i].count = 1;
      items[i].options = &write;
    }
    items[0].result = &result;
    GRETA_TRY(checked(greta_batch_generate(items.data(), items.size())));
    for (const greta_generate_item& item : items)
      if (item.status) return fail(Code(item.status), "%s", item.error);
    *ms = double(result.generate_ns) / 1e6 / steps;
    return back();
  }

  // The time for which the host is busy with a step that draws: that of kFlights submissions to an idle
  // device, which wait for nothing.
  Status host(uint32_t rounds, double* us) {
    Executor& executor = *executor_->shared->executor;
    uint64_t ns = 0;
    for (uint32_t round = 0; round < rounds; ++round) {
      uint32_t flights[kFlights];
      std::vector<Executor::Row> rows = next_rows();
      const uint64_t start = now_ns();
      for (uint32_t& flight : flights) {
        GRETA_TRY(executor.submit(rows, &flight));
        for (Executor::Row& row : rows) row = {kTokenFromSample, row.position + 1, row.sequence, row.output};
      }
      ns += now_ns() - start;
      for (const uint32_t flight : flights) GRETA_TRY(executor.wait(flight));
      GRETA_TRY(back());
    }
    *us = double(ns) / 1e3 / rounds / kFlights;
    return {};
  }

  // Prints what each kernel of a step takes.
  Status profile() {
    const std::vector<Executor::Row> rows = next_rows();
    const auto print = [](void*, const Executor::Stage& s) {
      printf("  %-18s %-28s %5u %9.1f us %8.1f GB/s %8.2f TFLOP/s\n", s.part, s.kernel, s.launches,
             double(s.ns) / 1e3, double(s.bytes) / double(s.ns), double(s.flops) / double(s.ns) / 1e3);
    };
    Executor& executor = *executor_->shared->executor;
    GRETA_TRY(executor.profile(rows, print, nullptr));  // the first compiles kernels, and times them cold
    printf("\n");
    return executor.profile(rows, print, nullptr);
  }

 private:
  // A step's rows. Sequence i of the executor is that of session i.
  std::vector<Executor::Row> next_rows() const {
    std::vector<Executor::Row> rows;
    for (uint32_t i = 0; i < count_; ++i)
      rows.push_back({uint32_t(token(i, options_.depth)), options_.depth, i, Executor::Output::Draw});
    return rows;
  }
  Status back() {
    for (greta_session* session : sessions_)
      GRETA_TRY(checked(greta_session_truncate(session, options_.depth)));
    return {};
  }
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
  double warm = 0, eval = 0, generate = 0, host = 0;
  GRETA_TRY(group.eval(3, &warm));  // compiles kernels and warms the device
  GRETA_TRY(group.generate(3, &warm));
  GRETA_TRY(group.eval(options.steps, &eval));
  GRETA_TRY(group.generate(options.steps, &generate));
  GRETA_TRY(group.host(options.steps, &host));
  printf("%4u sequences at %u: eval %.3f ms a step, %.1f t/s; generate %.3f ms, %.1f t/s; host %.0f us\n",
         count, options.depth, eval, count / eval * 1e3, generate, count / generate * 1e3, host);
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
    else if (word == "--apart")
      out->apart = true;
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
            "[--apart] [--profile]\n");
    return 2;
  }
  if (run(options).ok()) return 0;
  fprintf(stderr, "%s\n", error_text());
  return 1;
}
