// Jinja templates, and the values that they work on. JSON documents have the same values.
#pragma once
#include "text/jinja/json.h"
#include "text/jinja/template.h"
#include "text/jinja/value.h"
