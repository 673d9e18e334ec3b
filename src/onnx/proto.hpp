// Protobuf's classes for ONNX files (Debian's libonnx-dev, whose header asks for the definition). Private to src/onnx.
#pragma once
#define ONNX_ML 1
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>
