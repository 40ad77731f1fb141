// Owners of the handles of greta.h, and its structs with their sizes filled in.
#pragma once
#include <memory>

#include "greta.h"

namespace greta::tools {

// An options or result struct with its size filled in.
template <class T>
T sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

struct CloseHandle {
  void operator()(greta_runtime* p) const { greta_runtime_close(p); }
  void operator()(greta_file* p) const { greta_file_close(p); }
  void operator()(greta_model* p) const { greta_model_close(p); }
  void operator()(greta_executor* p) const { greta_executor_close(p); }
  void operator()(greta_tokenizer* p) const { greta_tokenizer_close(p); }
  void operator()(greta_service* p) const { greta_service_close(p); }
  void operator()(greta_request* p) const { greta_request_close(p); }
  void operator()(greta_chat* p) const { greta_chat_close(p); }
  void operator()(greta_adapter* p) const { (void)greta_adapter_close(p); }
};
using Runtime = std::unique_ptr<greta_runtime, CloseHandle>;
using File = std::unique_ptr<greta_file, CloseHandle>;
using Model = std::unique_ptr<greta_model, CloseHandle>;
using Executor = std::unique_ptr<greta_executor, CloseHandle>;
using Tokenizer = std::unique_ptr<greta_tokenizer, CloseHandle>;
using Service = std::unique_ptr<greta_service, CloseHandle>;
using Request = std::unique_ptr<greta_request, CloseHandle>;
using Chat = std::unique_ptr<greta_chat, CloseHandle>;
using Adapter = std::unique_ptr<greta_adapter, CloseHandle>;

}  // namespace greta::tools
