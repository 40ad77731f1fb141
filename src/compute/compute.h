// GretaCompute (L1): ops, tensor types and the kernel table.
#pragma once
#include "compute/calls.h"
#include "compute/kernel_table.h"
#include "compute/launch.h"
#include "compute/op.h"
#include "compute/quant_type.h"
#include "runtime/runtime.h"
