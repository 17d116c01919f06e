#include <sys/stat.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ptxgen/gguf.h"
#include "src/reference/dequantize.h"
#include "tests/gguf/samples.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/support/files.h"

namespace ptxgen::gguf {
namespace {

// What a reader of all of it would touch and rely on.
void require_sound(const File& file, absl::Span<const std::byte> bytes) {
  REQUIRE(file.alignment() > 0);
  for (const Tensor& tensor : file.tensors()) {
    REQUIRE(tensor.values() > 0);
    REQUIRE(tensor.offset < bytes.size());
    REQUIRE(tensor.data.size() <= bytes.size() - tensor.offset);
    if (!tensor.data.empty()) REQUIRE(tensor.data.data() == bytes.data() + tensor.offset);
    if (tensor.format()) {
      const FormatInfo& format = info(*tensor.format());
      REQUIRE(tensor.data.size() == tensor.values() / format.block_values * format.block_bytes);
    }
  }
}

bool same(const File& a, const File& b) {
  if (a.version() != b.version() || a.alignment() != b.alignment()) return false;
  if (a.metadata().size() != b.metadata().size() || a.tensors().size() != b.tensors().size()) return false;
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    const Tensor& x = a.tensors()[i];
    const Tensor& y = b.tensors()[i];
    if (x.name != y.name || x.dims != y.dims || x.offset != y.offset || x.data != y.data) return false;
  }
  return true;
}

TEST_CASE("tensors have their shape, type and data", "[gguf]") {
  const auto bytes = testing::every_kind().bytes();
  const auto file = File::parse(bytes);
  REQUIRE(file.ok());
  CHECK(file->version() == 3);
  CHECK(file->alignment() == 16);
  REQUIRE(file->tensors().size() == 3);
  require_sound(*file, bytes);

  const Tensor& weights = *file->find_tensor("weights");
  CHECK(weights.type_name == "q8_0");
  CHECK(weights.format() == Format::kQ8_0);
  CHECK(weights.k() == 32);
  CHECK(weights.n() == 2);
  CHECK(weights.n_dims == 2);
  CHECK(weights.offset % 16 == 0);
  CHECK(weights.data.size() == 68);
  CHECK(std::to_integer<int>(weights.data.front()) == 1);
  CHECK(std::to_integer<int>(weights.data.back()) == 68);

  const Tensor& bias = *file->find_tensor("bias");
  CHECK(bias.type_name == "f32");
  CHECK(bias.format() == std::nullopt);
  CHECK(bias.k() == 3);
  CHECK(bias.n() == 1);
  CHECK(bias.data.size() == 12);
  CHECK(bias.data.data() == weights.data.data() + 80);

  const Tensor& exotic = *file->find_tensor("exotic");
  CHECK(exotic.ggml_type == 999);
  CHECK(exotic.type_name.empty());
  CHECK(exotic.data.empty());
  CHECK(exotic.dims == std::array<std::uint64_t, 4>{5, 1, 2, 1});
  CHECK(exotic.n() == 2);
  CHECK(exotic.offset == bias.offset + 16);
  CHECK(file->find_tensor("weight") == nullptr);
}

TEST_CASE("version 2 and the default alignment", "[gguf]") {
  const auto bytes = testing::smallest_tensor().bytes();
  const auto file = File::parse(bytes);
  REQUIRE(file.ok());
  CHECK(file->version() == 2);
  CHECK(file->alignment() == 32);
  CHECK(file->metadata().empty());
  CHECK(file->tensors()[0].offset == 64);
}

TEST_CASE("every prefix of a file is an error or the same file", "[gguf]") {
  for (const auto& bytes : {testing::every_kind().bytes(), testing::smallest_tensor().bytes()}) {
    const auto whole = File::parse(bytes);
    REQUIRE(whole.ok());
    std::size_t accepted = 0;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::vector<std::byte> prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      const auto file = File::parse(prefix);
      if (!file.ok()) {
        CHECK(file.status().message().substr(0, 6) == "gguf: ");
        continue;
      }
      ++accepted;
      CHECK(same(*file, *whole));
    }
    // Only the unsized tensor at the end of the first file can lose bytes unnoticed, all but one of its
    // eight.
    CHECK(accepted == (whole->find_tensor("exotic") != nullptr ? 7 : 0));
  }
}

TEST_CASE("a file with any bit flipped is refused or still sound", "[gguf]") {
  const auto bytes = testing::every_kind().bytes();
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::vector<std::byte> damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto file = File::parse(damaged);
    refused += !file.ok();
    if (file.ok()) require_sound(*file, damaged);
  }
  CHECK(refused > 1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int value : {0x00, 0xff}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] = static_cast<std::byte>(value);
      const auto file = File::parse(damaged);
      if (file.ok()) require_sound(*file, damaged);
    }
  }
}

TEST_CASE("files that cannot be mapped", "[gguf]") {
  const testing::ScratchFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const auto error = [](const std::string& file) { return std::string(File::open(file).status().message()); };
  CHECK(File::open(path("none")).status().code() == absl::StatusCode::kNotFound);
  CHECK(error(path("none")).find("gguf: cannot open '" + path("none") + "'") == 0);
  CHECK(error(folder.path().string()) == "gguf: '" + folder.path().string() + "' is no regular file");
  REQUIRE(::mkfifo(path("fifo").c_str(), 0600) == 0);
  CHECK(error(path("fifo")) == "gguf: '" + path("fifo") + "' is no regular file");
  REQUIRE(testing::write_file(path("empty"), ""));
  CHECK(error(path("empty")) ==
        "gguf: '" + path("empty") + "': magic at byte 0 takes 4 bytes, but the file ends at byte 0");
}

TEST_CASE("a mapped file moves with its views", "[gguf]") {
  auto opened = File::open(testing::data_path("layer.gguf"));
  REQUIRE(opened.ok());
  const Tensor* tensor = opened->find_tensor("output.weight");
  const std::byte first = tensor->data[0];
  File moved = *std::move(opened);
  CHECK(moved.find_tensor("output.weight") == tensor);
  const auto bytes = testing::read_data("layer.gguf");
  auto other = File::parse(bytes);
  REQUIRE(other.ok());
  CHECK(same(moved, *other));
  moved = *std::move(other);  // unmaps the file
  CHECK(moved.find_tensor("output.weight")->data[0] == first);
  CHECK(moved.find_tensor("output.weight")->data.data() ==
        bytes.data() + moved.find_tensor("output.weight")->offset);
}

struct Expected {
  const char* name;
  const char* type;
  std::uint64_t k, n, offset, bytes;
};

// As PyPI's gguf 0.19 lists the file.
constexpr Expected kLayer[] = {
    {"token_embd.weight", "q6_K", 512, 1031, 1216, 433020},
    {"blk.0.attn_norm.weight", "f32", 512, 1, 434240, 2048},
    {"blk.0.attn_q.weight", "q4_K", 512, 512, 436288, 147456},
    {"blk.0.attn_k.weight", "q5_K", 512, 128, 583744, 45056},
    {"blk.0.attn_v.weight", "q6_K", 512, 128, 628800, 53760},
    {"blk.0.attn_output.weight", "q4_0", 512, 512, 682560, 147456},
    {"blk.0.ffn_norm.weight", "f32", 512, 1, 830016, 2048},
    {"blk.0.ffn_gate.weight", "q8_0", 512, 1536, 832064, 835584},
    {"blk.0.ffn_up.weight", "q5_0", 512, 1536, 1667648, 540672},
    {"blk.0.ffn_down.weight", "q3_K", 1536, 512, 2208320, 337920},
    {"output_norm.weight", "f32", 512, 1, 2546240, 2048},
    {"output.weight", "q2_K", 512, 1031, 2548288, 173208},
    {"extra.q4_1.weight", "q4_1", 544, 33, 2721504, 11220},
    {"extra.q5_1.weight", "q5_1", 96, 7, 2732736, 504},
};

TEST_CASE("a file that ggml wrote reads as another reader reads it", "[gguf]") {
  const auto file = File::open(testing::data_path("layer.gguf"));
  REQUIRE(file.ok());
  CHECK(file->version() == 3);
  CHECK(file->alignment() == 32);
  CHECK(file->metadata().size() == 9);
  CHECK(file->find_value("general.architecture")->as_string() == "llama");
  CHECK(file->find_value("general.name")->as_string() == "one layer");
  CHECK(file->find_value("llama.feed_forward_length")->as_unsigned() == 1536);
  CHECK(file->find_value("llama.attention.layer_norm_rms_epsilon")->as_float() == double{1e-5f});
  REQUIRE(file->tensors().size() == std::size(kLayer));
  for (std::size_t i = 0; i < std::size(kLayer); ++i) {
    const Tensor& tensor = file->tensors()[i];
    CAPTURE(kLayer[i].name);
    CHECK(tensor.name == kLayer[i].name);
    CHECK(tensor.type_name == kLayer[i].type);
    CHECK(tensor.k() == kLayer[i].k);
    CHECK(tensor.n() == kLayer[i].n);
    CHECK(tensor.offset == kLayer[i].offset);
    CHECK(tensor.data.size() == kLayer[i].bytes);
    CHECK(tensor.format() == find_format(std::string_view(kLayer[i].type)));
  }
}

TEST_CASE("all tensors of a real file dequantise to plausible values", "[gguf][reference]") {
  const auto file = File::open(testing::data_path("layer.gguf"));
  REQUIRE(file.ok());
  int quantised = 0;
  for (const Tensor& tensor : file->tensors()) {
    if (!tensor.format()) continue;
    ++quantised;
    CAPTURE(std::string(tensor.name));
    std::vector<float> values(tensor.values());
    REQUIRE(reference::dequantize(*tensor.format(), tensor.data, absl::MakeSpan(values)).ok());
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
    }
    CHECK(std::isfinite(squares));
    // Weights are centred on zero and small.
    const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
    CHECK(deviation > 1e-3);
    CHECK(deviation < 1);
    CHECK(std::abs(sum / static_cast<double>(values.size())) < 0.1 * deviation);
  }
  CHECK(quantised == 11);
}

}  // namespace
}  // namespace ptxgen::gguf
