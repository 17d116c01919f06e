// Marks what a shared build of ptxgen exports; everything else is hidden.
#pragma once

#define PTXGEN_API __attribute__((visibility("default")))
