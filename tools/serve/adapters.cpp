#include "adapters.h"

#include <stdexcept>

#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr double kMostScale = 1e6;

// Scales by the number of the adapter.
std::vector<float> scales_of(const Fields& fields, const char* name, size_t count) {
  std::vector<float> scales(count, 0.0F);
  const Json* list = fields.list(name);
  if (!list) return scales;
  std::vector<bool> named(count);
  for (const Json& each : *list) {
    if (!each.is_object()) fields.wrong(name, "a list of objects with id and scale", each);
    const Fields one(each, fields.path(name) + "[].");
    const auto id = one.whole("id", 0, INT32_MAX);
    const auto scale = one.number("scale", -kMostScale, kMostScale);
    if (!id || !scale) fields.wrong(name, "a list of objects with id and scale", each);
    if (size_t(*id) >= count || named[size_t(*id)])
      fields.wrong(name,
                   count ? "for adapters 0 to " + std::to_string(count - 1) + ", each named once"
                         : std::string("empty, as the server has no adapters"),
                   each);
    named[size_t(*id)] = true;
    scales[size_t(*id)] = static_cast<float>(*scale);
  }
  return scales;
}

}  // namespace

std::shared_ptr<ServedAdapters> open_adapters(greta_model* model,
                                              const std::vector<tools::GivenAdapter>& given) {
  auto adapters = std::make_shared<ServedAdapters>();
  for (const tools::GivenAdapter& each : given) {
    ServedAdapters::One& one = adapters->all.emplace_back();
    one.path = each.path;
    one.scale = each.scale;
    one.adapter = tools::open_adapter(model, each);
    if (!one.adapter) throw std::runtime_error(greta_error_text());
  }
  return adapters;
}

void read_lora(const Fields& fields, Ask* ask) {
  if (!fields.has("lora")) return;
  ask->adapter_scales = scales_of(fields, "lora", ask->adapters ? ask->adapters->all.size() : 0);
  ask->own_adapters = true;
}

void choose_adapters(const Ask& ask, std::vector<const greta_adapter*>* adapters,
                     std::vector<float>* scales) {
  if (!ask.adapters) return;
  for (size_t i = 0; i < ask.adapters->all.size(); ++i) {
    const ServedAdapters::One& one = ask.adapters->all[i];
    const float scale = ask.own_adapters ? ask.adapter_scales[i] : one.scale.load();
    if (scale == 0) continue;
    adapters->push_back(one.adapter.get());
    scales->push_back(scale);
  }
}

void list_adapters(Context& context) {
  Json list = Json::array();
  if (const auto& adapters = context.model().defaults.adapters)
    for (const ServedAdapters::One& one : adapters->all)
      list.push_back({{"id", list.size()}, {"path", one.path}, {"scale", one.scale.load()}});
  context.send(list);
}

// The body is a list, with those that keep a scale; the others get 0.
void set_adapters(Context& context) {
  const Json body = parse_object("{\"adapters\": " + context.call.body + "}");
  if (body.size() != 1) throw Refused(400, "the body must be a JSON list of objects with id and scale");
  const auto& adapters = context.model().defaults.adapters;
  const std::vector<float> scales = scales_of(Fields(body), "adapters", adapters ? adapters->all.size() : 0);
  for (size_t i = 0; i < scales.size(); ++i) adapters->all[i].scale = scales[i];
  context.send({{"success", true}});
}

}  // namespace greta::serve
