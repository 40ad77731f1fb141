// Fills steps of an executor with rows of texts, runs them, and hands their results out.
//
// On a device that computes beside the host, a step is submitted before the results of the one before are
// taken, unless the host has to see them first.
#pragma once
#include "engine/write/writing.h"

namespace greta {

class Steps {
 public:
  using Part = Writing::Part;
  // Whose texts these are.
  struct Owner {
    virtual void ended(Writing& writing) = 0;                               // or it has failed
    virtual void ran(uint32_t rows, uint64_t ns) { (void)rows, (void)ns; }  // a step
   protected:
    ~Owner() = default;
  };
  // What an exception of a container ends: the text for which it was thrown, or the call, which it leaves.
  enum class Thrown : uint8_t { EndsText, Passes };

  Steps(Executor& executor, Owner& owner, Thrown thrown, size_t texts, uint64_t (*now)() = now_ns);

  // A step may be submitted while another one with the same texts runs.
  bool ahead() const { return ahead_ && !turns_; }
  // Whether texts take turns: the results of a step are taken after the next one, with other texts, was
  // submitted.
  void set_turns(bool turns) { turns_ = turns; }
  void begin();  // fills a new step
  // What is left of it, where `texts` go on.
  Writing::Room room(size_t texts) const;
  bool has_room(const Writing& writing) const { return left_.rows && (writing.on_device() || left_.choices); }
  void add(const Part& part);
  // Lets second models guess for texts that go on, in steps that these share.
  template <class Texts>
  void guess_together(const Texts& texts) {
    (void)guarded([&] {
      asking_.clear();
      for (const auto& text : texts) asking_.push_back(&*text);
      return ask_models();
    });
  }
  std::span<const Part> parts() const { return parts_; }
  // Runs what was added, as one step or, where results need it, one of each kind. A step that fails is tried
  // again in halves, down to the text that is to blame. Where it may have changed states, its texts go back
  // and come again later, each in steps of its own.
  void run();
  // Waits for the step that is under way, and hands its results out. Returns false if there is none.
  bool collect();
  void forget(const Writing& writing);  // which is going away

  // Runs what may fail for one text, which ends by that.
  template <class Act>
  void act_for(Writing& writing, Act&& act) {
    const Status status = attempt(act);
    if (!status.ok()) writing.fail(status);
    if (!writing.goes_on()) owner_.ended(writing);
  }

 private:
  struct Turn {  // a step that was submitted
    std::vector<Part> parts;
    uint32_t flight = 0, rows = 0;
    uint64_t begun_ns = 0, number = 0;  // Executor::submitted
  };
  template <class Act>
  Status attempt(Act&& act) {
    if (thrown_ == Thrown::EndsText) return guarded(act);
    try {
      return act();
    } catch (const CallbackThrew& threw) {
      return fail(Code::Argument, "%s", threw.text);
    }
  }
  void run(std::span<const Part> parts);
  Status submit(std::span<const Part> parts);
  bool lost_state(const Part& part) const;  // which is live
  bool send_back(std::span<const Part> parts);
  void refuse(Writing& writing, Status status);
  void feed_head();
  Status feed_waiting(std::span<const Part> parts);
  Status ask_models();

  Executor& executor_;
  Owner& owner_;
  const Thrown thrown_;
  const bool ahead_;
  uint64_t (*const now_)();
  std::vector<Part> parts_, batch_;
  Writing::Room left_ = {};
  std::vector<Executor::Row> rows_;
  std::vector<Executor::HeadPart> head_parts_;
  std::vector<Writing*> head_texts_, asking_;
  std::vector<std::vector<int32_t>> guesses_;
  Turn under_way_, next_;
  bool any_under_way_ = false, turns_ = false;
  uint64_t collected_ns_ = 0;  // when the last step was
};

}  // namespace greta
