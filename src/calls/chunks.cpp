#include "calls/chunks.hpp"

#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "calls/chunk_order.hpp"
#include "calls/division.hpp"
#include "calls/division_axes.hpp"

namespace parity {
namespace {

using Tensors = std::vector<CandidateTensor>;

// The port's tensors are shared: without a cache each call's whole has all calls before it.
CandidateTensor joined(const std::shared_ptr<const Tensors>& tensors, const Chunks& chunks) {
  CandidateTensor whole = (*tensors)[chunks.tensors.front()];
  whole.call = chunks.calls.front();
  if (chunks.extents.empty()) return whole;
  whole.shape[static_cast<size_t>(chunks.axis)] = sum_of(chunks.extents);
  whole.load = [tensors, of = chunks.tensors, axis = chunks.axis, rows = chunks.rows] {
    std::vector<at::Tensor> loaded;
    for (const size_t c : of) loaded.push_back((*tensors)[c].load().unflatten(axis, {rows, -1}));
    return at::cat(loaded, axis + 1).flatten(axis, axis + 1);
  };
  return whole;
}

CandidateTensor divided(const CandidateTensor& whole, const Chunks& chunks, size_t i) {
  CandidateTensor part = whole;
  part.call = chunks.calls[i];
  if (chunks.extents.empty()) return part;
  part.shape[static_cast<size_t>(chunks.axis)] = chunks.extents[i];
  part.load = [load = whole.load, chunks, i] { return chunk_of(load(), chunks, i); };
  return part;
}

// Each whole where its first chunk was, or the last, if the port has the earlier ones as wholes of their own.
Tensors join(Tensors all, const Division& division, std::set<size_t> gone) {
  const auto tensors = std::make_shared<const Tensors>(std::move(all));
  std::map<size_t, const Chunks*> by_place;
  for (const Chunks& chunks : division.chunks) {
    const size_t place = division.calls.anew ? chunks.tensors.back() : std::ranges::min(chunks.tensors);
    gone.insert(division.calls.anew ? chunks.tensors.end() - 1 : chunks.tensors.begin(), chunks.tensors.end());
    if (chunks.rows > 0) by_place.emplace(place, &chunks);
  }
  Tensors whole;
  for (size_t c = 0; c < tensors->size(); ++c)
    if (const auto chunks = by_place.find(c); chunks != by_place.end())
      whole.push_back(joined(tensors, *chunks->second));
    else if (!gone.contains(c))
      whole.push_back((*tensors)[c]);
  return whole;
}

// Pass for pass the first call's chunks, then the next's, as the reference ran them.
std::vector<CandidateTensor> split(const std::vector<CandidateTensor>& tensors, const Division& division,
                                   const std::set<size_t>& gone) {
  std::map<size_t, const Chunks*> by_tensor;
  for (const Chunks& chunks : division.chunks) by_tensor.emplace(chunks.tensors.front(), &chunks);
  std::map<std::pair<size_t, size_t>, std::vector<CandidateTensor>> parts;  // by pass and chunk
  size_t pass = 0;                                                          // of what is not divided: the latest
  for (size_t c = 0; c < tensors.size(); ++c) {
    const auto chunks = by_tensor.find(c);
    if (chunks == by_tensor.end()) {
      if (!gone.contains(c)) parts[{pass, 0}].push_back(tensors[c]);
      continue;
    }
    pass = chunks->second->pass;
    const std::vector<int>& calls = chunks->second->calls;
    for (size_t i = 0; i < calls.size() && chunks->second->rows > 0; ++i) {
      if (calls[i] < 0) continue;
      const auto before =
          std::count_if(calls.begin(), calls.end(), [&](int call) { return call >= 0 && call < calls[i]; });
      parts[{pass, static_cast<size_t>(before)}].push_back(divided(tensors[c], *chunks->second, i));
    }
  }
  std::vector<CandidateTensor> all;
  for (auto& [place, of_call] : parts) std::move(of_call.begin(), of_call.end(), std::back_inserter(all));
  return all;
}

// The reference's values have an axis of one sample, and the port's none.
bool lacks_batch(const CallShapes& path) {
  const auto is_sample = [](const auto& of_call) { return of_call.second.size() > 1 && of_call.second[0] == 1; };
  const auto is_shorter = [&](const auto& of_call) {
    return of_call.second.size() + 1 == path.reference.first().size();
  };
  return !path.own && std::ranges::all_of(path.reference.shapes, is_sample) &&
         std::ranges::all_of(path.port.shapes, is_shorter);
}

Tensors with_batch(Tensors tensors, std::vector<CallShapes>& paths) {
  for (CallShapes& path : paths)
    if (lacks_batch(path))
      for (auto& [call, shape] : path.port.shapes) {
        CandidateTensor& tensor = tensors[path.tensors.at(call)];
        shape.insert(shape.begin(), 1);
        tensor.shape = shape;
        tensor.load = [load = tensor.load] { return load().unsqueeze(0); };
      }
  return tensors;
}

}  // namespace

std::vector<CandidateTensor> match_calls(const Program& reference, const Dump& dump,
                                         std::vector<CandidateTensor> tensors, std::vector<CallShapes> paths,
                                         std::vector<std::string>& notes) {
  Tensors sampled = with_batch(tensors, paths);
  std::vector<Division> possible = divisions(reference, std::move(paths));
  if (possible.empty()) return tensors;
  tensors = std::move(sampled);
  Division division = fitting(std::move(possible), reference, dump, tensors);
  const auto otherwise = std::count_if(division.chunks.begin(), division.chunks.end(),
                                       [](const Chunks& chunks) { return chunks.rows == 0; });
  const char *one = division.of_port ? "port" : "reference", *other = division.of_port ? "reference" : "port";
  notes.push_back(fmt::format(
      "the {} ran in {} chunks ({}) what the {} ran {}: {} tensors are {}, {} that are divided otherwise (a cache) "
      "are not compared",
      one, division.extents.size(), fmt::join(division.extents, " + "), other,
      division.calls.anew ? "anew from the first on in each call" : "at once",
      division.chunks.size() - static_cast<size_t>(otherwise), division.of_port ? "joined" : "divided",
      division.left_out.size() + static_cast<size_t>(otherwise)));
  order_chunks(division, reference, dump, tensors, notes);
  const std::set<size_t> gone(division.left_out.begin(), division.left_out.end());
  return division.of_port ? join(std::move(tensors), division, gone) : split(tensors, division, gone);
}

}  // namespace parity
