// Decides what each step of an executor computes, for many requests.
//
//   admission  in the order of the waiting line, while there are a sequence and pages
//   decode     first: a row of each request whose prompt was read and whose events somebody reads
//   prompts    then, in order of admission, as many rows as a step may have within its time
//   pages      where none is free, the prefix cache gives up its oldest, to the host if that has room; then
//              the newest request is set back: it loses its pages and reads its text anew later, while its
//              answer goes on where it was
//
// One thread calls step(). Nothing that is shared by requests throws once the scheduler is made.
#pragma once
#include "engine/serve/step_clock.h"
#include "engine/serve/waiting_line.h"
#include "engine/write/steps.h"

namespace greta {

struct SchedulerOptions {
  size_t requests = 1024;         // the most that may wait or run
  uint64_t step_ns = 50'000'000;  // what a step should take while answers are generated
  uint32_t chunk_tokens = 0;      // prompt tokens of such a step; 0: by step_ns
  bool prefix_cache = true;
  bool turns = false;  // requests take turns on several devices even if one of them is the processor
  uint64_t host_cache_bytes = 0;  // of host memory for pages that the prefix cache gives up
  PageFolderOptions folder = {};  // for pages that have no place in memory any more
  uint64_t (*now)() = now_ns;     // what steps are timed with
};

struct SchedulerCounts {
  uint64_t steps = 0, rows = 0, cached_tokens = 0, set_back = 0, brought_back = 0;
  uint64_t step_ns = 0;  // of all steps
  uint64_t host_ns = 0;  // for which step() worked, and did not wait for the device
  // Of requests that have ended. `failed` are not among those by reason.
  uint64_t ended[kStopReasons] = {}, failed = 0, prompt_tokens = 0, generated_tokens = 0, reread_tokens = 0;

  void note_end(const Request& request) {
    ++(request.status().ok() ? ended[size_t(request.result().reason)] : failed);
    prompt_tokens += request.result().prompt_tokens;
    generated_tokens += request.result().generated_tokens;
    reread_tokens += request.result().reread_tokens;
  }
};

class Scheduler final : Steps::Owner {
 public:
  Scheduler(Executor& executor, const SchedulerOptions& options);
  ~Scheduler();

  size_t live() const { return live_.size(); }
  void add(std::shared_ptr<Request> request);  // live() is below options.requests
  bool step();     // false: there is nothing to do until a request comes, is read or is cancelled
  void end_all();  // as if all were cancelled
  uint32_t running() const { return uint32_t(running_.size()); }
  SchedulerCounts counts() const;
  uint32_t cached_tokens(uint64_t salt, std::span<const int32_t> tokens) const {
    return cache_.pages_known(salt, tokens) * kPageTokens;
  }
  uint32_t forget(uint64_t salt, std::span<const int32_t> tokens) {
    return cache_.forget(salt, tokens) * kPageTokens;
  }
  const PageIndex& index() const { return cache_.index(); }

 private:
  bool do_step();
  void ended(Writing& writing) override { leave(static_cast<Request&>(writing), Request::Phase::Ended); }
  void ran(uint32_t rows, uint64_t ns) override;

  void end_cancelled();
  void resume_read();
  void admit();
  bool fits(const Request& request) const;
  bool pause_stalled();
  Status start(Request& request);
  Status load(Request& request);
  bool is_known(const Request& request) const;
  size_t most_decodes();
  void plan_decodes();
  void plan_decode(Request& request);
  void plan_prompts();
  uint32_t prompt_rows();
  void plan_prompt(Request& request, uint32_t* rows);
  uint32_t plan(Request& request, Writing::Room room);
  void adopt_cached(Request& request);
  bool computed_beside(Request& request) const;
  bool reserve(Request& request, uint32_t end_position);
  void keep_state(Request& request);
  void set_back(Request& request, Request::Phase phase);
  void leave(Request& request, Request::Phase phase);
  void end(Request& request, StopReason reason) {
    steps_.act_for(request, [&] { return request.end(reason); });
  }
  void fail(Request& request, Status status) {
    steps_.act_for(request, [&] { return status; });
  }

  Executor& executor_;
  const SchedulerOptions options_;
  PrefixCache cache_;
  Steps steps_;
  StepClock clock_;
  WaitingLine waiting_;
  std::vector<std::shared_ptr<Request>> live_;
  std::vector<Request*> paused_;
  std::vector<Request*> running_;  // in the order of their first admissions
  std::vector<Request*> order_;    // a copy, while requests leave
  uint32_t first_ = 0;             // whose row comes first where not all fit into a step
  uint64_t admissions_ = 0;
  SchedulerCounts counts_;
};

}  // namespace greta
