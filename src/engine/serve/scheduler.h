// Decides what each step of an executor computes, for many requests.
//
//   admission  in the order of the waiting line, while there are a sequence and pages
//   decode     first: a row of each request whose prompt was read and whose events somebody reads
//   prompts    then, in order of admission, as many rows as a step may have within its time
//   pages      where none is free, the prefix cache gives up its oldest, to the host if that has room; then
//              the newest request is set back: it loses its pages and reads its text anew later, while its
//              answer goes on where it was
//   failure    of a step is tried again with fewer requests, until it is known whose it is
//
// One thread calls step(). Nothing that is shared by requests throws once the scheduler is made.
#pragma once
#include "engine/serve/host_pages.h"
#include "engine/serve/page_folder.h"
#include "engine/serve/page_index.h"
#include "engine/serve/step_clock.h"
#include "engine/serve/waiting_line.h"

namespace greta {

struct SchedulerOptions {
  size_t requests = 1024;         // the most that may wait or run
  uint64_t step_ns = 50'000'000;  // what a step should take while answers are generated
  uint32_t chunk_tokens = 0;      // prompt tokens of such a step; 0: by step_ns
  bool prefix_cache = true;
  uint64_t host_cache_bytes = 0;  // of host memory for pages that the prefix cache gives up
  PageFolderOptions folder = {};  // for pages that have no place in memory any more
  uint64_t (*now)() = now_ns;     // what steps are timed with
};

struct SchedulerCounts {
  uint64_t steps = 0, rows = 0, cached_tokens = 0, set_back = 0, brought_back = 0;
};

class Scheduler {
 public:
  Scheduler(Executor& executor, const SchedulerOptions& options);
  ~Scheduler();

  size_t live() const { return live_.size(); }
  void add(std::shared_ptr<Request> request);  // live() is below options.requests
  bool step();     // false: there is nothing to do until a request comes, is read or is cancelled
  void end_all();  // as if all were cancelled
  uint32_t running() const { return uint32_t(running_.size()); }
  const SchedulerCounts& counts() const { return counts_; }
  const PageIndex& index() const { return index_; }

 private:
  struct Part {  // the rows of one request in a step
    Request* request;
    uint32_t begin, count;  // positions
    bool draws;             // from its last row
    bool scores = false;    // each row has logits, for the probability of the token that follows
    uint32_t pooled = 0;    // how many of its rows have hidden states
    uint32_t outputs() const { return scores ? count : draws; }
    // Steps that draw have at most a row of logits of each request; hidden states have steps of their own.
    enum class Kind : uint8_t { Draws, Scores, Pools };
    Kind kind() const { return pooled ? Kind::Pools : scores ? Kind::Scores : Kind::Draws; }
  };
  struct Turn {  // a step that was submitted
    std::vector<Part> parts;
    uint32_t flight = 0, rows = 0;
    uint64_t begun_ns = 0;
  };

  void end_cancelled();
  void resume_read();
  void admit();
  bool fits(const Request& request);
  bool pause_stalled();
  Status start(Request& request);
  void plan_decodes();
  void plan_decode(Request& request);
  void plan_prompts();
  void plan_prompt(Request& request, uint32_t* room);
  void plan_pooled(Request& request, uint32_t* room);
  uint32_t prompt_rows();
  void adopt_cached(Request& request);
  uint32_t next_cached(const Request& request) const;
  uint32_t bring_back(const Request& request);
  uint32_t read_back(Request& request);
  bool make_room();
  PageIndex::Host host();
  void store(uint32_t node);
  bool computed_beside(const Request& request) const;
  bool reserve(Request& request, uint32_t end_position);
  Request* newest();
  void run(std::span<const Part> parts);
  Status submit(std::span<const Part> parts);
  bool collect();
  void take_outputs(const Part& part, const float* logits);
  void take_pooled(const Part& part, const float* states);
  Status load(Request& request);
  void keep_state(Request& request);
  void cache_pages();
  void cache_pages_of(Request& request);
  void set_back(Request& request, Request::Phase phase);
  void leave(Request& request);
  void fail(Request& request, Status status);
  void end(Request& request, StopReason reason);

  Executor& executor_;
  const SchedulerOptions options_;
  const uint32_t step_tokens_, max_outputs_, max_hidden_;
  const bool ahead_;  // the device computes beside the host
  HostPages host_pages_;
  PageFolder folder_;
  uint64_t not_stored_ = 0;    // pages that are lost next, for which the folder has no room
  std::vector<int32_t> text_;  // of a page that is stored
  PageIndex index_;
  StepClock clock_;
  WaitingLine waiting_;
  std::vector<std::shared_ptr<Request>> live_;
  std::vector<Request*> paused_;
  std::vector<Request*> running_;  // in the order of their first admissions
  std::vector<Request*> order_;    // a copy, while requests leave
  std::vector<Part> plan_;
  std::vector<Part> batch_;
  uint32_t planned_rows_ = 0, planned_choices_ = 0, planned_hidden_ = 0;
  uint32_t first_ = 0;  // whose row comes first where not all fit into a step
  std::vector<Executor::Row> rows_;
  Turn under_way_, next_;
  bool any_under_way_ = false;
  uint64_t collected_ns_ = 0;  // when the last step was
  uint64_t admissions_ = 0;
  SchedulerCounts counts_;
};

}  // namespace greta
