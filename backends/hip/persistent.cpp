// Plans as one launch: which of them can be, the list for decode_stages, the launch, and what follows when
// groups of it did not meet.
#include "backends/hip/persistent.h"

#include <algorithm>
#include <cstring>

#include "backends/hip/hip.h"

namespace greta {

// How often a group looks for the others, with about a microsecond between. It is more than any launch takes.
constexpr uint32_t kPolls = 1 << 20;

static constexpr const char* kBodies[] = {
#define HIP_STAGE(name) #name,
#include "backends/hip/stages.def"
    ""};

#define HIP_STAGES_CODE(target, symbol) extern "C" const uint8_t symbol[], symbol##_end[];
#include "backends/hip/stages_code.inc"
struct StagesCode {
  const char* target;
  CodeBytes code;
};
static const StagesCode kCode[] = {
#define HIP_STAGES_CODE(target, symbol) {target, {symbol, symbol##_end}},
#include "backends/hip/stages_code.inc"
    {"", {}}};

// The code for a device: that for its exact target comes first.
static CodeBytes code_for(const char* arch) {
  for (const StagesCode& code : kCode)
    if (runs_on(code.target, arch)) return code.code;
  return {};
}

HipPersistent::HipPersistent(HipDevice& owner) : device(owner) {}

HipPersistent::~HipPersistent() {
  for (Buffer* buffer : {&list, &staged, &state, &report_}) device.release(*buffer);
}

HipPersistentBlock HipPersistent::block() const {
  return {list.address, state.address, report_.address, launches, kPolls};
}

// The body of decode_stages for a launch, an index of kBodies; kNoBody: none.
constexpr uint32_t kNoBody = uint32_t(std::size(kBodies)) - 1;
static uint32_t body_of(const HipCommand& command) {
  uint32_t body = 0;
  while (body < kNoBody && strcmp(kBodies[body], command.kernel->name)) ++body;
  return body;
}

// All launches have a body. The reason why not names each kernel that has none.
static Status check_bodies(const std::vector<HipCommand>& commands) {
  std::vector<std::string> missing;
  for (const HipCommand& command : commands)
    if (command.kind == HipCommand::kLaunch && body_of(command) == kNoBody &&
        std::ranges::find(missing, command.kernel->name) == missing.end())
      missing.push_back(command.kernel->name);
  if (missing.empty()) return {};
  std::string names = missing[0];
  for (size_t i = 1; i < missing.size(); ++i) names += ", " + missing[i];
  return fail(Code::Unsupported, "decode_stages has no body for %s", names.c_str());
}

static Status list_launch(const HipCommand& command, HipListedLaunch* out) {
  const char* const name = command.kernel->name;
  const uint64_t groups = uint64_t(command.groups[0]) * command.groups[1] * command.groups[2];
  if (groups > INT32_MAX || command.kernel->threads > HipListedLaunch::kThreads)
    return fail(Code::Unsupported, "%s has %llu groups of %u threads", name, (unsigned long long)groups,
                command.kernel->threads);
  *out = {};
  out->body = body_of(command);
  out->threads = command.kernel->threads;
  out->groups_x = command.groups[0];
  out->groups_y = command.groups[1];
  out->groups = uint32_t(groups);
  out->meets = command.meets;
  memcpy(out->block, command.block, command.block_bytes);
  return {};
}

// Launches of a stage follow each other without a meeting, so each begins with the group behind the one that
// took the last group of the launch before it.
static Status list_launches(const std::vector<HipCommand>& commands, uint32_t groups,
                            std::vector<HipListedLaunch>* out, std::vector<HipCommand>* copies) {
  GRETA_TRY(check_bodies(commands));
  uint64_t taken = 0;  // groups of the stage so far
  for (const HipCommand& command : commands) {
    if (command.kind != HipCommand::kLaunch) {
      copies->push_back(command);
      continue;
    }
    if (!copies->empty()) return fail(Code::Unsupported, "a copy stands between launches");
    HipListedLaunch& launch = out->emplace_back();
    GRETA_TRY(list_launch(command, &launch));
    launch.meets = launch.meets && out->size() > 1;  // before the first one all groups meet anyway
    if (launch.meets) taken = 0;
    launch.first = uint32_t(taken % groups);
    taken += launch.groups;
  }
  return out->empty() ? fail(Code::Unsupported, "it has no launches") : Status{};
}

Status HipPersistent::make(const std::vector<HipCommand>& commands, uint32_t groups) {
  std::vector<HipListedLaunch> listed;
  GRETA_TRY(list_launches(commands, groups, &listed, &copies));
  launches = uint32_t(listed.size());
  meetings = uint32_t(std::ranges::count(listed, 1u, &HipListedLaunch::meets)) + 1;
  for (uint32_t i = 0; i < launches; ++i) names_.push_back(kBodies[listed[i].body]);
  listed.emplace_back().meets = 1;  // the end
  const uint64_t bytes = listed.size() * sizeof listed[0];
  GRETA_TRY(device.allocate(bytes, Memory::Device, &list));
  GRETA_TRY(device.allocate(bytes, Memory::Upload, &staged));
  GRETA_TRY(device.allocate(kHipGridBytes, Memory::Device, &state));
  GRETA_TRY(device.allocate(sizeof(uint32_t), Memory::Readback, &report_));
  memcpy(staged.mapped, listed.data(), bytes);
  memset(report_.mapped, 0, sizeof(uint32_t));
  return {};
}

// --- the part of the device

// Loads decode_stages, and finds out how many of its groups stay on the device.
Status HipDevice::open_persistent() {
  const CodeBytes code = code_for(info_.arch);
  if (code.empty())
    return fail(Code::Unsupported, "persistent: this build has no decode_stages for %s", info_.arch);
  if (!hip.hipModuleLaunchCooperativeKernel || !hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)
    return fail(Code::Unsupported, "persistent: %s has no hipModuleLaunchCooperativeKernel", info_.driver);
  GRETA_TRY(load({.name = "decode_stages", .code = code, .group_size = {HipListedLaunch::kThreads, 1, 1}},
                 &persistent_));
  int groups = 0;
  const HipCurrent current(hip, index());
  GRETA_TRY(result(hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
                       &groups, persistent_kernel().function, HipListedLaunch::kThreads, 0),
                   "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"));
  persistent_groups_ = uint32_t(std::max(groups, 0)) * uint32_t(properties_->units);
  if (!persistent_groups_)
    return fail(Code::Unsupported, "persistent: no group of decode_stages fits on %s", info_.name);
  return {};
}

// --- the part of the queue

// A plan that cannot be one launch is launched as any other.
void HipQueue::make_persistent(HipGraph& graph) {
  if (!device_.persistent_groups() || persistent_failed_) return;
  auto made = std::make_unique<HipPersistent>(device_);
  const Status status = made->make(graph.commands, device_.persistent_groups());
  if (status.ok()) {
    device_.log()(LogLevel::Info, "a plan of %u launches is one launch of %u groups, which meet %u times",
                  made->launches, device_.persistent_groups(), made->meetings);
    graph.persistent = std::move(made);
    return;
  }
  device_.log()(LogLevel::Info, "a plan of %zu commands is not one launch: %s", graph.commands.size(),
                error_text());
  clear_error_text();
}

int HipQueue::launch_persistent(HipPersistent& plan, void* stream, const char** call) {
  const HipLibrary& hip = device_.hip;
  if (!plan.filled) {
    *call = "hipMemcpyAsync";
    if (const int error =
            hip.hipMemcpyAsync(reinterpret_cast<void*>(plan.list.address), plan.staged.mapped,
                               plan.list.bytes, kHipHostToDevice, stream))
      return error;
    *call = "hipMemsetD32Async";
    if (const int error = hip.hipMemsetD32Async(reinterpret_cast<void*>(plan.state.address), 0,
                                                kHipGridBytes / 4, stream))
      return error;
    plan.filled = true;
  }
  plan.expect_report();
  HipPersistentBlock block = plan.block();
  void* arguments[] = {&block};
  *call = "hipModuleLaunchCooperativeKernel";
  return hip.hipModuleLaunchCooperativeKernel(device_.persistent_kernel().function,
                                              device_.persistent_groups(), 1, 1, HipListedLaunch::kThreads,
                                              1, 1, 0, stream, arguments);
}

void HipQueue::give_up_persistent(const char* why) {
  if (!persistent_failed_)
    device_.log()(LogLevel::Warning, "%s: from now on plans are launches of their own: %s",
                  device_.info().name, why);
  persistent_failed_ = true;
}

// Gives a captured plan as one launch. Returns false if it has to be given otherwise.
bool HipQueue::replay_persistent(const HipCommand& command, HipTimeline& timeline, int* error,
                                 const char** call) {
  HipPersistent* const plan = command.graph->persistent.get();
  if (!plan || persistent_failed_) return false;
  *error = launch_persistent(*plan, timeline.stream, call);
  if (*error == kHipSuccess) {
    timeline.unsettled.assign(1, command);
    for (size_t i = 0; i < plan->copies.size() && !*error; ++i)
      *error = work(plan->copies[i], timeline.stream, call);
    return true;
  }
  (void)device_.result(*error, *call);
  give_up_persistent(error_text());
  clear_error_text();
  return false;
}

// What may be given behind a launch that may have to be done again: it does no harm, and can be done again.
static bool may_follow(const HipCommand& command) {
  return command.kind == HipCommand::kSignal ||
         (command.kind == HipCommand::kCopy && command.direction == kHipDeviceToHost);
}

Status HipQueue::note_unsettled(const HipCommand& command, HipTimeline& timeline) {
  if (timeline.unsettled.empty()) return {};
  if (!may_follow(command)) return settle(timeline);
  timeline.unsettled.push_back(command);
  return {};
}

// Waits for the end of a plan that is one launch, and sees to it that the plan was done. What comes next then
// finds its results.
Status HipQueue::settle(HipTimeline& timeline) {
  if (timeline.unsettled.empty()) return {};
  GRETA_TRY(mark_end(timeline));
  GRETA_TRY(poll(timeline.end));
  return conclude(timeline);
}

// The stream is idle. Where groups did not meet, the plan's launches are done again, from the first one on:
// no group went past that meeting, so nothing was drawn. The launches leave all counters 0 if they end.
Status HipQueue::conclude(HipTimeline& timeline) {
  std::vector<HipCommand> again;
  again.swap(timeline.unsettled);
  const HipGraph& graph = *again[0].graph;
  const HipPersistent& plan = *graph.persistent;
  const uint32_t report = plan.report();
  if (!report) return {};
  // A group was lost behind the last meeting. Others may have drawn, so the launches cannot be done again.
  if (report == kHipGridRuns) return device_.result(kHipLaunchFailure, "the end of decode_stages");
  char why[128];
  format_text(why, sizeof why, "groups of decode_stages did not meet before launch %u of %u, %s", report,
              plan.launches, plan.name_of(report - 1));
  give_up_persistent(why);
  if (report > plan.launches) return {};
  for (const HipCommand& counters : graph.counters) {
    const char* call = "";
    if (const int error = work(counters, timeline.stream, &call)) {
      device_.lose(call, error);
      return device_.result(error, call);
    }
  }
  for (const HipCommand& command : again) GRETA_TRY(run(command, timeline));
  return {};
}

// After a wait for the stream or for an event of it. Returns in `again` whether there is more to wait for.
Status HipQueue::look_at_persistent(HipTimeline& timeline, bool* again) {
  *again = false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timeline.unsettled.empty()) return {};
  const uint32_t report = timeline.unsettled[0].graph->persistent->report();
  const bool met = !report || report == kHipGridRuns;
  const HipCurrent current(device_.hip, device_.index());
  GRETA_TRY(mark_end(timeline));
  if (met && device_.hip.hipEventQuery(timeline.end) != kHipSuccess) return {};  // it still runs
  *again = report != 0;
  return settle(timeline);
}

}  // namespace greta
