// How metadata values are encoded.
#pragma once

#include "ptxgen/gguf.h"
#include "src/gguf/cursor.h"

namespace ptxgen::gguf {

// A ValueType field; fails the cursor when there is no such type.
ValueType read_value_type(Cursor& cursor, Field field);

// Moves past a value of `type`, checking all of it. `depth` is the number of arrays around it.
void skip_value(Cursor& cursor, ValueType type, int depth = 0);

}  // namespace ptxgen::gguf
