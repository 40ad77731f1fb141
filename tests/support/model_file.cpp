#include "support/model_file.h"

#include <catch2/catch_test_macros.hpp>

#include "support/gguf_writer.h"

namespace greta::test {

ModelFile::Tensor& ModelFile::tensor(const std::string& name) {
  for (Tensor& t : tensors)
    if (t.name == name) return t;
  FAIL("the golden has no tensor " << name);
  return tensors[0];
}

void ModelFile::drop_value(const std::string& key) {
  std::erase_if(values, [&](const Value& v) { return v.key == key; });
}

void ModelFile::drop_tensor(const std::string& name) {
  std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
}

void ModelFile::set_u32(const std::string& key, uint32_t number) {
  drop_value(key);
  values.push_back({key, uint32_t(ValueType::U32), Bytes().u32(number).data});
}

ModelFile read_model(const std::string& name) {
  const std::string path = GRETA_SOURCE_DIR "/tests/golden/architectures/" + name + ".gguf";
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

}  // namespace greta::test
