#include "support/model_file.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "places.h"
#include "support/failing_memory.h"
#include "support/gguf_writer.h"

namespace greta::test {

ModelFile::Tensor& ModelFile::tensor(const std::string& name) {
  for (Tensor& t : tensors)
    if (t.name == name) return t;
  FAIL("the golden has no tensor " << name);
  return tensors[0];
}

const ModelFile::Value& ModelFile::value(const std::string& key) const {
  for (const Value& v : values)
    if (v.key == key) return v;
  FAIL("the golden has no key " << key);
  return values[0];
}

void ModelFile::drop_value(const std::string& key) {
  std::erase_if(values, [&](const Value& v) { return v.key == key; });
}

void ModelFile::drop_tensor(const std::string& name) {
  std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
}

void ModelFile::set_u32(const std::string& key, uint32_t number) { test::set_u32(key, number)(*this); }

std::string ModelFile::text(const std::string& key) const {
  return value(key).payload.substr(sizeof(uint64_t));
}

static const char* const kGoldens = GRETA_SOURCE_DIR "/tests/golden/architectures/";

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldens))
    if (entry.path().extension() == ".gguf") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

ModelFile read_model(const std::string& name) {
  const std::string path = kGoldens + name + ".gguf";
  Source source;
  Gguf gguf;
  const bool opened = source.open_file(path.c_str()).ok() && gguf.open(std::move(source)).ok();
  INFO(error_text());
  REQUIRE(opened);
  ModelFile model;
  for (const GgufValue& v : gguf.values()) {
    Bytes payload;
    if (v.type == ValueType::Array) payload.u32(uint32_t(v.element)).u64(v.count);
    if (v.type == ValueType::String) payload.u64(v.bytes);
    payload.data.append(reinterpret_cast<const char*>(v.data), v.bytes);
    model.values.push_back({std::string(v.key), uint32_t(v.type), payload.data});
  }
  for (const GgufTensor& t : gguf.tensors()) {
    std::string data(t.bytes, 0);
    REQUIRE(gguf.source().read_at(t.part, t.offset, data.data(), data.size()).ok());
    model.tensors.push_back({std::string(t.name), quant_info(t.type).gguf_id, {t.ne, t.ne + t.dims}, data});
  }
  return model;
}

std::string write_model(const ModelFile& model) {
  GgufWriter writer;
  for (const auto& v : model.values) writer.raw_value(v.key, v.type, v.payload);
  for (const auto& t : model.tensors) writer.tensor(t.name, t.type, t.ne, t.data);
  return writer.file();
}

// ---- changes ----------------------------------------------------------------------------------

static Edit set(const std::string& key, ValueType type, const std::string& payload) {
  return [=](ModelFile& m) {
    m.drop_value(key);
    m.values.push_back({key, uint32_t(type), payload});
  };
}
Edit set_u32(const std::string& key, uint32_t number) {
  return set(key, ValueType::U32, Bytes().u32(number).data);
}
Edit set_layers(const std::string& key, const std::vector<uint32_t>& numbers) {
  Bytes array;
  array.u32(uint32_t(ValueType::U32)).u64(numbers.size());
  for (const uint32_t number : numbers) array.u32(number);
  return set(key, ValueType::Array, array.data);
}
Edit set_f32(const std::string& key, float number) {
  return set(key, ValueType::F32, Bytes().number(number).data);
}
Edit set_text(const std::string& key, const char* text) {
  return set(key, ValueType::String, Bytes().string(text).data);
}
Edit drop(const std::string& key) {
  return [=](ModelFile& m) { m.drop_value(key); };
}
Edit without(const char* tensor) {
  return [=](ModelFile& m) { m.drop_tensor(tensor); };
}
Edit poke(const char* tensor, float number) {
  return [=](ModelFile& m) { memcpy(m.tensor(tensor).data.data(), &number, sizeof number); };
}
Edit retype(const char* tensor, uint32_t type) {
  return [=](ModelFile& m) { m.tensor(tensor).type = type; };
}

// ---- loading ----------------------------------------------------------------------------------

std::vector<float> LoadedModel::logits(std::span<const int32_t> tokens, const std::vector<size_t>& pieces) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(executor, &session).ok());
  std::vector<float> all;
  for (size_t at = 0, turn = 0; at < tokens.size(); ++turn) {
    const size_t count = std::min(pieces[turn % pieces.size()], tokens.size() - at);
    const float* rows = nullptr;
    INFO(error_text());
    REQUIRE(session->eval(tokens.subspan(at, count), OutputRows::All, &rows).ok());
    all.insert(all.end(), rows, rows + count * model.shape.vocab);
    at += count;
  }
  return all;
}

std::vector<float> LoadedModel::last_logits(std::span<const int32_t> tokens) {
  const std::vector<float> all = logits(tokens, {tokens.size()});
  return {all.end() - ptrdiff_t(model.shape.vocab), all.end()};
}

ModelLoader::ModelLoader() {
  Device* device = nullptr;
  DeviceOptions options;
  options.threads = 1;
  REQUIRE(open_device("cpu", options, &device).ok());
  device_.reset(device);
  kernels_ = std::make_unique<DeviceKernels>(*device);
}

Status ModelLoader::load(const ModelFile& file, uint32_t context, std::unique_ptr<LoadedModel>* out) {
  auto loaded = std::make_unique<LoadedModel>();
  loaded->file = write_model(file);
  Source source;
  GRETA_TRY(source.open_memory(loaded->file.data(), loaded->file.size()));
  GRETA_TRY(describe_model(std::move(source), *kernels_, true, Log{}, &loaded->model));
  GRETA_TRY(load_model(&loaded->model, {}));
  std::unique_ptr<Executor> executor;
  const ExecutorOptions options{.context = context, .key_type = 0, .value_type = 0};  // an f32 cache
  GRETA_TRY(Executor::open(loaded->model, options, uint64_t(1) << 32, &executor));
  loaded->executor = std::move(executor);
  if (out) *out = std::move(loaded);
  return {};
}

void ModelLoader::check_refused(const ModelFile& file, const std::string& named) {
  clear_error_text();
  Status status;
  {
    const FailingMemory memory(0);
    status = load(file);
    CHECK(memory.peak_bytes() < kMostOfRefusal);
  }
  const std::string text = error_text();
  INFO("expected a word of \"" << named << "\", got: " << text);
  CHECK_FALSE(status.ok());
  CHECK((status.code == Code::File || status.code == Code::Unsupported));
  CHECK(text.find(named) != text.npos);
}

}  // namespace greta::test
