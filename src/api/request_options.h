// Reads what a caller asks of a service.
#pragma once
#include "api/handles.h"

namespace greta {

constexpr uint32_t kMaxRequests = 1u << 20;

// executor: that of the service
Status read_request_options(const greta_model& model, const Executor& executor,
                            const greta_request_options* given, RequestOptions* out);

}  // namespace greta
