#include "engine/executor/step_profile.h"

#include <algorithm>
#include <cstring>

namespace greta {

void StepProfile::add(const GretaGraph& graph, const std::vector<uint64_t>& ns) {
  for (size_t i = 0; i < ns.size(); ++i) {
    const GretaGraph::Command& command = graph.commands()[i];
    const char* name = command.row ? command.row->name : "copy";
    auto stage = std::ranges::find_if(stages_, [&](const Stage& s) {
      return !strcmp(s.kernel, name) && !strcmp(s.part, command.part);
    });
    if (stage == stages_.end()) stage = stages_.insert(stage, Stage{name, command.part, 0, 0, 0, 0});
    const Cost cost = command.cost(sizes_.tokens, sizes_.outputs, sizes_.depth);
    stage->launches += 1;
    stage->ns += ns[i];
    stage->bytes += cost.bytes;
    stage->flops += cost.flops;
  }
}

}  // namespace greta
