// precompiled.hpp and LibTorch's tensors, which are slow to parse; nothing of this project.
#pragma once
#include <ATen/ATen.h>

#include "precompiled.hpp"
