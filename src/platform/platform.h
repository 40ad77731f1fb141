// Platform: what the other layers need from the operating system and the processor.
#pragma once
#include "platform/checked.h"
#include "platform/checksum.h"
#include "platform/clock.h"
#include "platform/cpu_features.h"
#include "platform/dynamic_library.h"
#include "platform/file.h"
#include "platform/log.h"
#include "platform/pages.h"
#include "platform/progress.h"
#include "platform/size_text.h"
#include "platform/status.h"
#include "platform/thread_pool.h"
