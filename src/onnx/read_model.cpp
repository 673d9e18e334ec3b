#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/named.hpp"
#include "dump/mapped_file.hpp"
#include "onnx/dtypes.hpp"
#include "onnx/model.hpp"
#include "onnx/names.hpp"
#include "onnx/read_tensor.hpp"

namespace parity::onnx {
namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

constexpr int64_t kFirstOpset = 13;  // before it, axes and splits were attributes of other operators than now
constexpr int kMetadata = 9;         // NodeProto.metadata_props, younger than Debian's header

class Reader {
 public:
  Reader(const std::filesystem::path& file, std::shared_ptr<const ModelProto> proto)
      : file_(file), tensors_(file, proto), proto_(std::move(proto)) {}

  Model read() const {
    Model model;
    model.producer = proto_->producer_name();
    if (!proto_->producer_version().empty()) model.producer += " " + proto_->producer_version();
    for (const auto& set : proto_->opset_import())
      if (set.domain().empty() || set.domain() == "ai.onnx") model.opset = set.version();
    if (model.opset < kFirstOpset)
      throw Error(
          fmt::format("{}: is of ONNX's operator set {}; {} or later is needed: export it again, or convert it "
                      "with onnx.version_converter",
                      file_.string(), model.opset, kFirstOpset));
    model.graph = graph(proto_->graph());
    return model;
  }

 private:
  Graph graph(const GraphProto& from) const {
    Graph graph;
    graph.name = from.name();
    for (const auto& tensor : from.initializer()) graph.initializers[tensor.name()] = tensors_.read(tensor);
    if (from.sparse_initializer_size() > 0)
      throw Error(fmt::format("{}: has sparse initializers, which are not read", file_.string()));
    for (const auto& input : from.input())
      if (!graph.initializers.contains(input.name())) graph.inputs.push_back(declared(input));
    for (const auto& output : from.output()) graph.outputs.push_back(output.name());
    for (const NodeProto& node : from.node()) graph.nodes.push_back(this->node(node));
    return graph;
  }

  GraphInput declared(const ::onnx::ValueInfoProto& from) const {
    const std::string where = fmt::format("{}: input '{}'", file_.string(), from.name());
    if (!from.type().has_tensor_type()) throw Error(where + ": is no tensor");
    const auto& type = from.type().tensor_type();
    GraphInput input{from.name(), named({where}, [&] { return dtype_of(type.elem_type()); }), std::nullopt};
    if (!type.has_shape()) return input;
    input.shape.emplace();
    for (const auto& size : type.shape().dim()) input.shape->push_back(size.has_dim_value() ? size.dim_value() : -1);
    return input;
  }

  Node node(const NodeProto& from) const {
    Node node;
    node.kind = from.op_type();
    node.domain = from.domain() == "ai.onnx" ? "" : from.domain();
    node.name = from.name();
    node.inputs.assign(from.input().begin(), from.input().end());
    node.outputs.assign(from.output().begin(), from.output().end());
    for (const AttributeProto& attribute : from.attribute()) node.attributes[attribute.name()] = value(attribute);
    place_in_modules(node, metadata(from));
    return node;
  }

  static std::map<std::string, std::string> metadata(const NodeProto& node) {
    std::map<std::string, std::string> entries;
    const auto& unknown = node.unknown_fields();
    for (int i = 0; i < unknown.field_count(); ++i) {
      const auto& field = unknown.field(i);
      ::onnx::StringStringEntryProto entry;
      if (field.number() == kMetadata && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
          entry.ParseFromString(field.length_delimited()))
        entries[entry.key()] = entry.value();
    }
    return entries;
  }

  Attribute value(const AttributeProto& from) const {
    Attribute to;
    if (from.has_i()) to.integer = from.i();
    if (from.has_f()) to.number = from.f();
    if (from.has_s()) to.text = from.s();
    if (from.has_t()) to.tensor = tensors_.read(from.t());
    if (from.has_g()) to.graph = std::make_shared<Graph>(graph(from.g()));
    to.integers.assign(from.ints().begin(), from.ints().end());
    to.numbers.assign(from.floats().begin(), from.floats().end());
    to.texts.assign(from.strings().begin(), from.strings().end());
    return to;
  }

  const std::filesystem::path& file_;
  TensorReader tensors_;
  std::shared_ptr<const ModelProto> proto_;
};

std::shared_ptr<const ModelProto> parsed(const std::filesystem::path& file) {
  google::protobuf::SetLogHandler(nullptr);  // it would write lines of its own to stderr
  const MappedFile mapped(file);
  auto proto = std::make_shared<ModelProto>();
  if (mapped.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw Error(fmt::format("{}: is larger than 2 GiB, which no ONNX file is: its weights belong in a file beside it",
                            file.string()));
  if (!proto->ParseFromArray(mapped.data(), static_cast<int>(mapped.size())))
    throw Error(fmt::format("{}: is no ONNX model, or a truncated one", file.string()));
  if (!proto->has_graph() || proto->graph().node_size() == 0)
    throw Error(fmt::format("{}: is no ONNX model: it has no graph with nodes", file.string()));
  return proto;
}

}  // namespace

bool is_model_file(const std::filesystem::path& file) { return file.extension() == ".onnx"; }

Model read_model(const std::filesystem::path& file) { return Reader(file, parsed(file)).read(); }

}  // namespace parity::onnx
