// The engine turns a model's file and tokens into logits and text.
#pragma once
#include "engine/adapter/adapter.h"
#include "engine/executor/executor.h"
#include "engine/executor/explain.h"
#include "engine/executor/place.h"
#include "engine/model/model.h"
#include "engine/sampling/sampler.h"
#include "engine/serve/service.h"
#include "engine/session/chat.h"
#include "engine/session/session.h"
#include "engine/write/stop.h"
#include "gguf/gguf.h"
#include "text/text.h"
