// Jinja templates and the values that they work on, which serve for JSON as well.
#pragma once
#include "text/jinja/json.h"
#include "text/jinja/template.h"
#include "text/jinja/value.h"
