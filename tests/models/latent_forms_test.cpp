// Latent attention in the form of converters before April 2025, with the matrices of keys and values in one
// tensor, against the same model in the newer form: the logits have the same bits, whatever its type.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "selftest/rig.h"
#include "support/model_file.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;
using selftest::Matrix;

namespace {

// The golden's sizes, but for the latent width, which is to be whole blocks of every type.
constexpr uint32_t kLayers = 2, kWidth = 24, kHeads = 3, kPlain = 8, kRotary = 12, kValue = 10, kLatent = 512;
constexpr uint32_t kRows = kPlain + kValue;  // of a head

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string layer_name(uint32_t layer, const char* part) {
  return "blk." + std::to_string(layer) + "." + part + ".weight";
}

// The same model in both forms, of random weights.
struct Forms {
  ModelFile joined, apart;
};

void add_layer(QuantType type, uint32_t l, selftest::Random& random, Forms* forms) {
  const auto gaussians = [&](size_t count, float spread) {
    return floats(selftest::gaussians(count, random, spread));
  };
  ModelFile::Tensor& latent = forms->joined.tensor(layer_name(l, "attn_kv_a_mqa"));
  latent.ne = {kWidth, kLatent + kRotary};
  latent.data = gaussians(kWidth * (kLatent + kRotary), 0.2f);
  ModelFile::Tensor& norm = forms->joined.tensor(layer_name(l, "attn_kv_a_norm"));
  norm.ne = {kLatent};
  norm.data = gaussians(kLatent, 0.05f);
  forms->apart.tensor(latent.name) = latent;
  forms->apart.tensor(norm.name) = norm;

  const Matrix both =
      selftest::random_matrix(type, kHeads * kRows, kLatent, 1, selftest::Scales::Plain, random);
  const uint32_t id = quant_info(type).gguf_id;
  const bool turns = quant_info(type).block == 1;
  const size_t row_bytes = both.bytes.size() / both.n;
  const size_t value_bytes = turns ? row_bytes / kLatent : sizeof(float);
  std::string keys(size_t(kHeads) * kLatent * kPlain * value_bytes, 0), values;
  for (uint32_t h = 0; h < kHeads; ++h) {
    for (uint32_t row = 0; row < kPlain; ++row)
      for (uint32_t column = 0; column < kLatent; ++column) {
        const size_t from = size_t(h * kRows + row) * kLatent + column;
        const float decoded = float(both.values[from]);
        memcpy(&keys[((size_t(h) * kLatent + column) * kPlain + row) * value_bytes],
               turns ? static_cast<const void*>(&both.bytes[from * value_bytes]) : &decoded, value_bytes);
      }
    const uint8_t* const first = &both.bytes[(h * kRows + kPlain) * row_bytes];
    values.append(reinterpret_cast<const char*>(first), kValue * row_bytes);
  }
  ModelFile::Tensor& joined = forms->joined.tensor(layer_name(l, "attn_kv_b"));
  joined.type = id;
  joined.ne = {kLatent, kHeads * kRows};
  joined.data.assign(reinterpret_cast<const char*>(both.bytes.data()), both.bytes.size());
  forms->apart.drop_tensor(joined.name);
  const uint32_t key_id = turns ? id : quant_info(QuantType::f32).gguf_id;
  forms->apart.tensors.push_back({layer_name(l, "attn_k_b"), key_id, {kPlain, kLatent, kHeads}, keys});
  forms->apart.tensors.push_back({layer_name(l, "attn_v_b"), id, {kLatent, kValue, kHeads}, values});
}

Forms make_forms(QuantType type) {
  selftest::Random random(7);
  Forms forms;
  forms.joined = read_model("deepseek2-joined-lite");
  forms.joined.set_u32("deepseek2.attention.kv_lora_rank", kLatent);
  forms.apart = forms.joined;
  forms.apart.set_u32("deepseek2.attention.head_count_kv", 1);
  forms.apart.set_u32("deepseek2.attention.key_length", kLatent + kRotary);
  forms.apart.set_u32("deepseek2.attention.value_length", kLatent);
  forms.apart.set_u32("deepseek2.attention.key_length_mla", kPlain + kRotary);
  forms.apart.set_u32("deepseek2.attention.value_length_mla", kValue);
  for (uint32_t l = 0; l < kLayers; ++l) add_layer(type, l, random, &forms);
  return forms;
}

std::vector<float> logits_of(const std::string& file, const EngineOptions& options, Engine* engine) {
  open_engine(file, options, engine);
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine->executor.get(), [](Executor*) {}), &session).ok());
  const int32_t tokens[] = {1, 17, 42, 5, 60, 33, 9, 3, 51};
  std::vector<float> all;
  for (const auto& [first, count] : {std::pair{0, 8}, {8, 1}}) {
    const float* logits = nullptr;
    REQUIRE(session->eval({tokens + first, size_t(count)}, OutputRows::All, &logits).ok());
    all.insert(all.end(), logits, logits + size_t(count) * engine->model->shape.vocab);
  }
  return all;
}

}  // namespace

TEST_CASE("latent attention: both forms of a file give the same bits, for every type",
          "[models][architectures]") {
  for (const reference::Quant* of_type : reference::quants()) {
    DYNAMIC_SECTION(of_type->name) {
      QuantType type;
      REQUIRE(quant_from_name(of_type->name, &type));
      const Forms forms = make_forms(type);
      const std::string joined = write_model(forms.joined), apart = write_model(forms.apart);
      struct {
        bool exact, checked;
        uint64_t largest;  // as mapped as the device takes it; copied; in parts
      } const ways[] = {{true, true, 0}, {false, false, 0}, {false, false, 1 << 20}, {true, false, 25000}};
      for (const auto& [exact, checked, largest] : ways) {
        EngineOptions options;
        options.exact = exact;
        options.checked = checked;
        options.largest_weights = largest;
        options.executor.context = 64;
        INFO((exact ? "plain" : "fastest") << " kernels, a limit of " << largest);
        Engine one, two;
        const std::vector<float> from_joined = logits_of(joined, options, &one);
        CHECK(from_joined == logits_of(apart, options, &two));
        CHECK(std::isfinite(from_joined[0]));
        const TensorStore &a = one.model->store, &b = two.model->store;
        CHECK(a.parameters() == b.parameters());
        CHECK(a.token_bytes() == b.token_bytes());
        CHECK(a.device_bytes() + a.mapped_bytes() >= b.device_bytes() + b.mapped_bytes());
        if (largest) CHECK(a.device_bytes() == b.device_bytes());
      }
    }
  }
}

namespace {

// Blocks of 64 KiB and more that the CPU has taken and not given back.
struct Heap {
  uint64_t live = 0;
  static void* allocate(void* user, uint64_t bytes, uint64_t alignment) {
    static_cast<Heap*>(user)->live += bytes;
    return std::aligned_alloc(alignment, round_up(bytes, alignment));
  }
  static void release(void* user, void* pointer, uint64_t bytes) {
    static_cast<Heap*>(user)->live -= bytes;
    std::free(pointer);
  }
};

}  // namespace

TEST_CASE("latent attention: the memory of matrices that are made while loading is planned", "[models]") {
  for (const QuantType type : {QuantType::q4_0, QuantType::q8_0, QuantType::f16, QuantType::f32}) {
    INFO(quant_info(type).name);
    const std::string file = write_model(make_forms(type).joined);
    Heap heap;
    DeviceOptions options;
    options.allocator = {Heap::allocate, Heap::release, &heap};
    Device* opened = nullptr;
    REQUIRE(open_device("cpu", options, &opened).ok());
    const std::unique_ptr<Device> device(opened);
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    DeviceKernels kernels(*device);
    Model model;
    REQUIRE(describe_model(std::move(source), kernels, false, Log{}, &model).ok());
    const uint64_t planned = model.store.device_bytes(), before = heap.live;
    const QuantType key_type = quant_info(type).block == 1 ? type : QuantType::f32;
    const uint64_t keys = quant_bytes(key_type, kPlain * kLatent);
    const uint64_t values = quant_bytes(type, kValue * kLatent);
    CHECK(planned >= kLayers * kHeads * (keys + values));
    struct Seen {
      uint64_t done = 0, total = 0;
      bool grows = true;
    } seen;
    const Progress progress = {[](void* user, uint64_t done, uint64_t total) {
                                 Seen& s = *static_cast<Seen*>(user);
                                 s.grows = s.grows && done >= s.done && done <= total;
                                 s = {done, total, s.grows};
                                 return 0;
                               },
                               &seen};
    REQUIRE(load_model(&model, progress).ok());
    CHECK(heap.live - before == round_up(planned, page_bytes()));  // blocks are whole pages
    CHECK(seen.grows);
    CHECK(seen.done == seen.total);
  }
}
