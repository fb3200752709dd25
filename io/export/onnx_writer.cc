#include "io/export/onnx_writer.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

// A graph as ONNX's protobuf message, without weights, and the checks of what libonnx makes of it.
constexpr std::int64_t kOpset = 17, kIrVersion = 8;

int onnx_type(GraphType type) {
  return type == GraphType::f32 ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT64;
}

void fill_value(const GraphValue& value, onnx::ValueInfoProto& out) {
  out.set_name(value.name);
  onnx::TypeProto::Tensor& type = *out.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type(value.type));
  for (const GraphExtent& extent : value.shape) {
    auto& dimension = *type.mutable_shape()->add_dim();
    if (const auto* name = std::get_if<std::string>(&extent))
      dimension.set_dim_param(*name);
    else
      dimension.set_dim_value(std::get<std::int64_t>(extent));
  }
}

void fill_attribute(const GraphAttribute& value, onnx::AttributeProto& out) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    out.set_type(onnx::AttributeProto::INT);
    out.set_i(*integer);
  } else if (const auto* number = std::get_if<float>(&value)) {
    out.set_type(onnx::AttributeProto::FLOAT);
    out.set_f(*number);
  } else {
    out.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t each : std::get<std::vector<std::int64_t>>(value)) out.add_ints(each);
  }
}

void fill_node(const GraphNode& node, onnx::NodeProto& out) {
  for (const std::string& input : node.inputs) out.add_input(input);
  for (const std::string& output : node.outputs) out.add_output(output);
  out.set_name(node.name);
  out.set_op_type(node.op);
  for (const auto& [name, value] : node.attributes) {
    onnx::AttributeProto& attribute = *out.add_attribute();
    attribute.set_name(name);
    fill_attribute(value, attribute);
  }
}

/// All but the values of fp32 tensors, which have name, type and shape; initializers are in the
/// order of Graph::tensors.
onnx::ModelProto onnx_model(const Graph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("concertina");
  model.add_opset_import()->set_version(kOpset);
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name("main_graph");
  for (const GraphNode& node : graph.nodes) fill_node(node, *out.add_node());
  for (const GraphTensor& tensor : graph.tensors) {
    onnx::TensorProto& initializer = *out.add_initializer();
    initializer.set_name(tensor.name);
    initializer.set_data_type(onnx_type(tensor.type));
    for (const std::int64_t extent : tensor.shape) initializer.add_dims(extent);
    if (tensor.type == GraphType::i64)
      initializer.set_raw_data(tensor.integers.data(), tensor.integers.size() * 8);
  }
  for (const GraphValue& input : graph.inputs) fill_value(input, *out.add_input());
  for (const GraphValue& output : graph.outputs) fill_value(output, *out.add_output());
  return model;
}

/// Infers all types and shapes of onnx_model(), strictly; throws a failure where an operator or an
/// output does not fit.
void infer_onnx_shapes(onnx::ModelProto inferred, const std::string& where) {
  try {
    const onnx::ShapeInferenceOptions strict(/*check_type=*/true, /*strict_mode=*/1,
                                             /*data_prop=*/true);
    onnx::shape_inference::InferShapes(inferred, onnx::OpSchemaRegistry::Instance(), strict);
  } catch (const std::exception& error) {
    throw_failure(fmt::format("ONNX's shape inference refuses the model: {}", error.what()), where);
  }
}

/// Runs ONNX's checker on the model in the file `path` and on what lies beside it.
void check_onnx_file(const std::string& path) {
  try {
    onnx::checker::check_model(path);
  } catch (const std::exception& error) {
    throw_failure(fmt::format("ONNX's checker refuses the model: {}", error.what()), path);
  }
}

static_assert(std::endian::native == std::endian::little, "ONNX stores little-endian numbers");

namespace fs = std::filesystem;
namespace pb = google::protobuf::io;

constexpr std::uint64_t kPage = 4096;          // offsets in the data file: what mmap() takes
constexpr std::uint64_t kExternalFrom = 1024;  // bytes of a tensor
constexpr std::uint64_t kMessageLimit = (std::uint64_t{1} << 31) - 1;

/// Where the new files are made before they take the old ones' places; removed at the end.
class Workshop {
 public:
  explicit Workshop(std::string path) : path_(std::move(path)) {
    remove_tree(path_);  // of a process that died
    make_directories(path_);
  }
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  /// Where the file that is to be `path` is made, under its own name: the checker looks for it.
  std::string file(const std::string& path) const {
    return path_ + "/" + fs::path(path).filename().string();
  }

 private:
  std::string path_;
};

bool is_external(const GraphTensor& tensor) {
  return tensor.type == GraphType::f32 && tensor.bytes() >= kExternalFrom;
}

std::uint64_t weight_bytes(const Graph& graph) {
  std::uint64_t bytes = 0;
  for (const GraphTensor& tensor : graph.tensors) bytes += tensor.bytes();
  return bytes;
}

void set_place(onnx::TensorProto& tensor, const std::string& file, std::uint64_t offset,
               std::uint64_t length) {
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const char* key, std::string value) {
    auto& pair = *tensor.add_external_data();
    pair.set_key(key);
    pair.set_value(std::move(value));
  };
  entry("location", file);
  entry("offset", std::to_string(offset));
  entry("length", std::to_string(length));
}

/// Puts the values of all tensors where they belong, one tensor after the other.
class Filler {
 public:
  /// `data`: the file of external tensors, `name` as the model is to call it; null: there is none.
  Filler(const Graph& graph, const TensorReader& read, File* data, std::string name)
      : read_(read), data_(data), name_(std::move(name)) {
    std::int64_t most = 0;
    for (const GraphTensor& tensor : graph.tensors) most = std::max(most, tensor.count());
    values_.reserve(static_cast<std::size_t>(most));  // a vector that grows is there twice
  }

  void fill(const GraphTensor& tensor, onnx::TensorProto& out) {
    if (tensor.type == GraphType::i64) return;  // they came with the graph
    const std::span<const std::byte> bytes = std::as_bytes(values_of(tensor));
    if (!tensor.parameter.empty()) hash_.update(bytes);
    if (data_ == nullptr || !is_external(tensor)) {
      out.set_raw_data(bytes.data(), bytes.size());
      return;
    }
    at_ = (at_ + kPage - 1) / kPage * kPage;
    data_->write_at(at_, bytes);
    set_place(out, name_, at_, bytes.size());
    at_ += bytes.size();
  }
  std::uint64_t data_bytes() const { return at_; }
  std::string weights_sha256() { return hash_.hex(); }

 private:
  std::span<const float> values_of(const GraphTensor& tensor) {
    if (tensor.parameter.empty()) return tensor.floats;
    values_.resize(static_cast<std::size_t>(tensor.count()));
    read_(tensor.parameter, values_);
    return values_;
  }

  const TensorReader& read_;
  File* data_;
  std::string name_;
  Sha256 hash_;
  std::vector<float> values_;
  std::uint64_t at_ = 0;
};

void add_facts(onnx::ModelProto& model, std::map<std::string, std::string> facts,
               const std::string& weights_sha256) {
  facts["weights.sha256"] = weights_sha256;
  for (const auto& [key, value] : facts) {
    auto& property = *model.add_metadata_props();
    property.set_key(key);
    property.set_value(value);
  }
}

std::uint64_t write_message(const onnx::ModelProto& model, const std::string& path) {
  const std::uint64_t bytes = model.ByteSizeLong();
  if (bytes > kMessageLimit)
    throw_input(
        fmt::format("the model would be {} bytes, protobuf ends at {}", bytes, kMessageLimit), path,
        "a lower limit of what the model's own file holds");
  File file(path, File::Mode::create);
  pb::FileOutputStream stream(file.descriptor());
  bool good = false;
  {
    pb::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    good = model.SerializeToCodedStream(&coded);
  }
  if (!good || !stream.Flush()) {
    errno = stream.GetErrno();
    throw_io("write", path);
  }
  file.sync();
  file.close();
  return bytes;
}

/// Takes the places of the old files. A reader never sees a model beside another model's data.
void publish(const Workshop& workshop, const std::string& model, const std::string& data,
             bool external) {
  const auto take = [&](const std::string& path) { rename_path(workshop.file(path), path); };
  std::error_code error;
  for (const std::string& old : {model, data})
    if (fs::remove(old, error); error)
      throw_failure(fmt::format("the old file cannot be removed: {}", error.message()), old,
                    "a directory that can be written to");
  if (external) take(data);
  take(model);
  const std::string directory = fs::path(model).parent_path().string();
  sync_directory(directory.empty() ? "." : directory);
}

}  // namespace

bool onnx_available() {
  return true;
}

OnnxFiles write_onnx(const Graph& graph, const TensorReader& read, const std::string& path,
                     const OnnxOptions& options) {
  const std::string data = path + "_data";
  const Workshop workshop(path + ".writing");
  onnx::ModelProto model = onnx_model(graph);
  infer_onnx_shapes(model, path);

  const bool external = weight_bytes(graph) > options.inline_limit;
  File file;
  if (external) file = File(workshop.file(data), File::Mode::create);
  Filler filler(graph, read, external ? &file : nullptr, fs::path(data).filename().string());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    filler.fill(graph.tensors[i], *model.mutable_graph()->mutable_initializer(static_cast<int>(i)));
  OnnxFiles written;
  if (external) {
    file.sync();
    file.close();
    written.data = data;
    written.data_bytes = filler.data_bytes();
  }
  written.model = path;
  written.weights_sha256 = filler.weights_sha256();
  add_facts(model, options.facts, written.weights_sha256);
  written.bytes = write_message(model, workshop.file(path));
  onnx::ModelProto().Swap(&model);  // the checker reads all of the file
  check_onnx_file(workshop.file(path));
  publish(workshop, path, data, external);
  return written;
}

}  // namespace concertina
