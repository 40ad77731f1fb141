// What crosses between the devices of a step's segments, and the gates behind which segments stand that are
// submitted before it is known what they read.
#pragma once
#include "engine/executor/flights.h"

namespace greta {

class Crossings {
 public:
  Crossings(const Model& model, ExecutorDevices& on, Flights& flights, const ExecutorPlan& plan)
      : model_(model), on_(on), flights_(flights), plan_(plan), between_(on.size()) {}
  ~Crossings();
  Status open();  // allocates what residuals cross in

  // Records the copy of a residual that has come, or will have come when it runs, and of one that goes.
  Status receive(const Segment& segment, uint32_t tokens);
  Status send(const Segment& segment, uint32_t tokens);
  // Does what is between a segment, which was submitted, and the next one.
  Status cross_behind(std::span<const Segment> segments, size_t index, uint32_t tokens);
  // Copies a residual from where it went to where it comes from, unless the devices share the place.
  void hand_on(const Segment& segment, const Segment& next, uint32_t tokens);

  // Steps over several GPUs: all segments are submitted before it is known what they read. Each stands behind
  // a gate, which the host opens when that has come. Then no submission is waited for between two segments,
  // and none between two steps.
  // Finds whether that can be: their devices wait for the host, and nothing but residuals crosses. What a
  // layer that drafts tokens reads is known too late.
  Status open_gates(std::span<const Segment> segments, bool has_head);
  bool in_advance() const { return !gates_.empty(); }
  Status close_gate(size_t segment);  // what is recorded from here on waits for it
  void leave_open(size_t segment) { gates_[segment].number = 0; }
  bool is_closed(size_t segment) const { return gates_[segment].number; }
  Status open_gate(size_t segment);
  Status signal_left(size_t segment);  // behind it
  Status wait_left(size_t segment);    // for a segment whose successor was submitted, too
  void let_all_go();                   // and waits until what was submitted has ended

 private:
  // Where residuals cross on a device, for each flight: host memory from which they come and to which they
  // go. `goes` is empty where it is the same as `comes`.
  struct Between {
    DeviceMemory comes, goes;
    uint64_t gate = 0;  // the last number of Stream::wait_for_host
  };
  struct Gate {
    uint32_t device;
    uint64_t number = 0;  // what opens it; 0: nothing
    Event left = {};      // what the segment behind it has signalled, but for the last one
  };
  Status allocate_residuals(uint32_t device);
  Slice residual_between(uint32_t device, bool goes, uint32_t tokens) const;
  Status cross(const Segment& segment, const Segment& next, uint32_t tokens);

  const Model& model_;
  ExecutorDevices& on_;
  Flights& flights_;
  const ExecutorPlan& plan_;
  MappedPages shared_;            // which devices share
  std::vector<Between> between_;  // by device
  std::vector<Gate> gates_;       // of each segment
};

}  // namespace greta
