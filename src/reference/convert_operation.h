// Conversions and the largest absolute value, by their definitions in ptxgen/convert.h.
#pragma once

#include <memory>

#include "ptxgen/convert.h"
#include "src/reference/operation.h"

namespace ptxgen::reference {

FloatType float_type(ElementType type);

// What ConvertScale::kDevice makes of the largest |value|: what values are multiplied with, and the inverse
// that is written beside them.
struct DeviceScale {
  float factor, inverse;
};
DeviceScale device_scale(ElementType to, float absmax);

// `factor` is the argument of that name.
std::unique_ptr<Operation> convert_operation(const Convert& kernel, ArgInfos arguments, float factor);
std::unique_ptr<Operation> absmax_operation(const Absmax& kernel, ArgInfos arguments);

}  // namespace ptxgen::reference
