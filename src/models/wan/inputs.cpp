#include "models/wan/inputs.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {
namespace {

// A tensor argument; or a list of them, recorded as name.0, name.1, …; undefined when it was not given.
std::vector<at::Tensor> samples(const Dump& dump, const std::string& name, int call) {
  if (dump.has_input(name, call)) return {dump.input(name, call)};
  std::vector<at::Tensor> found;
  for (int i = 0; dump.has_input(fmt::format("{}.{}", name, i), call); ++i)
    found.push_back(dump.input(fmt::format("{}.{}", name, i), call));
  return found;
}

at::Tensor stacked(const Dump& dump, const std::string& name, int call) {
  const bool list = !dump.has_input(name, call);
  const auto found = samples(dump, name, call);
  if (found.empty()) return {};
  return list ? at::stack(found) : found[0];
}

at::Tensor wanted(at::Tensor found, const Dump& dump, const std::string& name) {
  if (!found.defined())
    throw Error(fmt::format("[wan] {}: forward was recorded without the argument '{}'", dump.file().string(), name));
  return found;
}

at::Tensor padded_context(const Dump& dump, int call, const WanConfig& config) {
  if (config.diffusers || dump.has_input("context", call))
    return stacked(dump, config.diffusers ? "encoder_hidden_states" : "context", call);
  auto found = samples(dump, "context", call);
  for (auto& sample : found) sample = at::constant_pad_nd(sample, {0, 0, 0, config.text_len - sample.size(0)});
  return found.empty() ? at::Tensor() : at::stack(found);
}

const nlohmann::json* root_call(const Dump& dump, int call) {
  for (const auto& event : dump.events())
    if (event.value("e", "") == "call" && event.value("path", "?").empty() && event.value("call", -1) == call)
      return &event;
  return nullptr;
}

// An argument that was not a tensor; null when it was not given.
nlohmann::json literal(const Dump& dump, int call, const std::string& name) {
  const auto* event = root_call(dump, call);
  if (!event || !event->contains("literals") || !event->at("literals").is_object()) return nullptr;
  return event->at("literals").value(name, nlohmann::json());
}

// A tensor, a number, or a list of numbers (recorded as fps.0, fps.1, …).
at::Tensor frame_rate(const Dump& dump, int call) {
  if (auto fps = stacked(dump, "fps", call); fps.defined()) return fps;
  std::vector<int64_t> rates;
  if (const auto one = literal(dump, call, "fps"); one.is_number_integer()) rates.push_back(one.get<int64_t>());
  for (auto next = literal(dump, call, "fps.0"); next.is_number_integer();) {
    rates.push_back(next.get<int64_t>());
    next = literal(dump, call, fmt::format("fps.{}", rates.size()));
  }
  return rates.empty() ? at::Tensor() : at::tensor(rates);
}

}  // namespace

WanInputs wan_inputs(const Dump& dump, int call, const WanConfig& config) {
  const bool d = config.diffusers;
  const auto argument = [&](const char* name) { return stacked(dump, name, call); };
  WanInputs in;
  in.latents = wanted(argument(d ? "hidden_states" : "x"), dump, d ? "hidden_states" : "x");
  in.time = wanted(argument(d ? "timestep" : "t"), dump, d ? "timestep" : "t");
  in.context = wanted(padded_context(dump, call, config), dump, d ? "encoder_hidden_states" : "context");
  in.image = argument(d ? "encoder_hidden_states_image" : "clip_fea");
  if (!d) in.condition = argument("y");
  in.fps = frame_rate(dump, call);
  // The originals take two-dimensional time steps as per frame; diffusers' SkyReels-V2 is told, its Wan 2.2 has one per
  // token.
  const auto told = literal(dump, call, "enable_diffusion_forcing");
  in.diffusion_forcing = in.time.dim() == 2 && (!d || (told.is_boolean() && told.get<bool>()));
  return in;
}

}  // namespace parity
