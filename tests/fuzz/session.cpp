// Any bytes as a saved session. What must hold: no crash; what is refused leaves the session as it was; what
// is taken holds tokens of the vocabulary alone, saves as the same bytes again, and goes on.
//
// Input: a byte of flags (1: the checksums are set right, 2: what follows is the state), then the state; or
// what makes one out of a good one: two bytes that say how many bytes it has, then for each change three of
// place and one to combine with what is there.
#include "../support/saved_session.h"
#include "places.h"
#include "runtime/runtime.h"

using namespace greta;
using namespace greta::test;

namespace {

void must(Status status) {
  if (!status.ok()) __builtin_trap();
}

std::string saved(Session& session) {
  std::string bytes;
  must(save(session, &bytes));
  return bytes;
}

struct Rig {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceKernels> kernels;
  Model model;
  std::shared_ptr<Executor> executor;
  std::unique_ptr<Session> session;
  std::string kept, good;  // what the session holds, another state
  Rig() {
    Device* opened = nullptr;
    DeviceOptions options;
    options.threads = 1;
    must(open_device("cpu", options, &opened));
    device.reset(opened);
    kernels = std::make_unique<DeviceKernels>(*device);
    Source source;
    must(source.open_file(GRETA_SOURCE_DIR "/tests/golden/architectures/llama-plain.gguf"));
    must(describe_model(std::move(source), *kernels, true, Log{}, &model));
    must(load_model(&model, {}));
    std::unique_ptr<Executor> made;
    must(Executor::open(model, {.context = 128, .cache_tokens = 256}, uint64_t(1) << 30, &made));
    executor = std::move(made);
    must(Session::open(executor, &session));
    std::vector<int32_t> tokens(66);  // a whole page, and a part of one
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = int32_t(i * 7 % model.shape.vocab);
    must(session->eval(tokens, OutputRows::None, nullptr));
    good = saved(*session);
    must(session->truncate(2));
    kept = saved(*session);
  }
};

std::string changed(const std::string& good, const uint8_t* data, size_t size) {
  if (size < 2) return good;
  const size_t length = data[0] | size_t(data[1]) << 8;
  std::string state = good.substr(0, length ? length : good.size());
  for (size_t i = 2; i + 4 <= size && !state.empty(); i += 4) {
    const size_t place = data[i] | size_t(data[i + 1]) << 8 | size_t(data[i + 2]) << 16;
    state[place % state.size()] ^= char(data[i + 3]);
  }
  return state;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Rig& rig = *new Rig;  // what destructors would do at exit is not what is tested
  if (size == 0) return 0;
  std::string state = data[0] & 2 ? std::string(reinterpret_cast<const char*>(data + 1), size - 1)
                                  : changed(rig.good, data + 1, size - 1);
  if (data[0] & 1) state = with_sums(state);
  Session& session = *rig.session;
  if (!restore(session, state).ok()) {
    if (session.position() != 2 || saved(session) != rig.kept) __builtin_trap();
    return 0;
  }
  for (const int32_t token : session.tokens())
    if (token < 0 || uint32_t(token) >= rig.model.shape.vocab) __builtin_trap();
  if (saved(session) != state) __builtin_trap();
  const int32_t next = 1;
  if (session.position() < session.context()) must(session.eval({&next, 1}, OutputRows::Last, nullptr));
  must(restore(session, rig.kept));
  return 0;
}
