// All that a file in models/ includes.
#pragma once
#include "engine/model/arch.h"
