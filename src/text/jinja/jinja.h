// Jinja templates and the values that they work on, which serve for JSON as well.
#pragma once
#include "engine/jinja/json.h"
#include "engine/jinja/template.h"
#include "engine/jinja/value.h"
