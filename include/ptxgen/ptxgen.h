// Everything an engine needs: kernels and their cache, devices, and the builder to write kernels of its own.
#pragma once

#include "ptxgen/arguments.h"
#include "ptxgen/codegen.h"
#include "ptxgen/device.h"
#include "ptxgen/emulator.h"
#include "ptxgen/environment.h"
#include "ptxgen/fields.h"
#include "ptxgen/format.h"
#include "ptxgen/gguf.h"
#include "ptxgen/instructions.h"
#include "ptxgen/kernel_builder.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernel_type.h"
#include "ptxgen/kernels.h"
#include "ptxgen/launch_shape.h"
#include "ptxgen/target.h"
#include "ptxgen/value.h"
