// GretaRuntime (L0): devices, and the memory and time on them.
#pragma once
#include "runtime/backends.h"
#include "runtime/checked_device.h"
#include "runtime/device.h"
#include "runtime/gfx_family.h"
#include "runtime/machine.h"
#include "runtime/null_device.h"
#include "runtime/pool.h"
#include "runtime/staging.h"
