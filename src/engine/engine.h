// The engine: from a model's file and tokens to logits and text.
#pragma once
#include "engine/chat.h"
#include "engine/chat_template.h"
#include "engine/executor.h"
#include "engine/gguf.h"
#include "engine/json_schema.h"
#include "engine/model.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "engine/source.h"
#include "engine/stop.h"
#include "engine/tokenizer.h"
