#include <algorithm>

#include "ptxgen/kernels.h"
#include "tests/cli/child.h"
#include "tests/gguf/samples.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace ptxgen;
using namespace ptxgen::testing;
using nlohmann::json;

namespace {

std::vector<std::string> tensors(const json& report, const std::string& result) {
  std::vector<std::string> names;
  for (const json& row : report["tensors"]) {
    if (row["result"] == result) names.push_back(row["tensor"]);
  }
  return names;
}

Command::Arguments verify_layer(std::initializer_list<std::string> more = {}) {
  Command::Arguments arguments = {"verify", "--gguf", data_path("layer.gguf")};
  arguments.insert(arguments.end(), more);
  return arguments;
}

// How many a kernel gives with k = 768, n = 33, vectors = 1029; bytes where they are compared as such.
u64 values_of(const std::string& kernel) {
  if (kernel == "copy") return 1029 * 16;
  if (kernel == "read") return sizeof(u32);
  if (kernel == "quantize_q8_1" || kernel == "q8_quantize") return 768 / 32 * 36;
  if (kernel.find("absmax") != kernel.npos) return 1;
  if (kernel == "f32_to_e4m3_device_scaled") return 4096 + 1;
  if (kernel == "convert" || kernel.find("_to_") != kernel.npos) return 4096;
  if (kernel == "fused_kv_hw_dp4a_q4k_gemv") return 2 * 33;
  if (kernel == "stage_f16") return 8 * 768 * 2 + 8 * sizeof(f32);
  const bool product = kernel.find("gemv") != kernel.npos || kernel.find("gemm") != kernel.npos;
  return product ? 33 : 768 * 33;
}

}  // namespace

TEST_CASE("verify agrees on every quantised tensor of the layer", "[cli]") {
  const Command command;
  for (const std::string type : {"f32", "f16", "bf16"}) {
    INFO(type);
    const json report = command.run_json(verify_layer({"--out-type", type}));
    CHECK(report["verified"] == true);
    CHECK(tensors(report, "equal").size() == 11);
    CHECK(tensors(report, "skipped").size() == 3);
    CHECK(report["tensors"].size() == 14);
    CHECK(report["summary"]["mismatches"] == 0);
    u64 values = 0;
    for (const json& row : report["tensors"]) {
      if (row["result"] == "skipped") {
        CHECK(row["detail"] == "not quantised");
        continue;
      }
      values += row["values"].get<u64>();
      CHECK(row["mismatches"] == 0);
      CHECK(row["descriptor"].get<std::string>().ends_with("out_type=" + type));
    }
    CHECK(report["summary"]["values"] == values);
    CHECK(values > 4000000);
  }
}

TEST_CASE("verify prints a table and a summary, and no progress bar into a file", "[cli]") {
  const Command command;
  const Finished finished = command.run(verify_layer());
  CHECK(finished.exit_status == 0);
  CHECK(finished.err.empty());
  for (const char* part :
       {"emulated device", "tensor", "mismatches", "time", "blk.0.attn_q.weight", "q4_K", "512 x 512",
        "q4k_dequant", "262144", "equal", "skipped: not quantised",
        "verified: all 11 agree bit for bit; 4089024 values compared, 0 mismatches, 3 skipped"}) {
    INFO(part);
    CHECK(finished.out.find(part) != std::string::npos);
  }
  CHECK(finished.out.find('\r') == std::string::npos);
}

TEST_CASE("verify takes the tensors that a pattern names", "[cli]") {
  const Command command;
  CHECK(tensors(command.run_json(verify_layer({"--tensor", "blk.0.ffn_*.weight"})), "equal") ==
        std::vector<std::string>{"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"});
  CHECK(tensors(command.run_json(verify_layer({"--tensor", "blk.?.attn_[qk].weight"})), "equal") ==
        std::vector<std::string>{"blk.0.attn_q.weight", "blk.0.attn_k.weight"});
  CHECK(tensors(command.run_json(verify_layer({"--tensor=output.weight"})), "equal") ==
        std::vector<std::string>{"output.weight"});
}

TEST_CASE("verify of nothing is no success", "[cli]") {
  const Command command;
  const std::string only_f32 = "*norm*";
  const Finished finished = command.run(verify_layer({"--tensor", only_f32}));
  CHECK(finished.exit_status == 1);
  CHECK(finished.out.find("NOTHING WAS VERIFIED") != std::string::npos);
  CHECK(command.run_json(verify_layer({"--tensor", only_f32}), 1)["verified"] == false);
}

TEST_CASE("a pattern that matches no tensor is refused", "[cli]") {
  const Command command;
  for (const std::string pattern : {"nothing.*", "", "[", "blk"}) {
    INFO(pattern);
    const Finished finished = command.run(verify_layer({"--tensor", pattern}));
    CHECK(finished.exit_status == 2);
    CHECK(finished.out.empty());
    CHECK(finished.err.find("--tensor '" + pattern + "' matches none of the 14 tensors") !=
          std::string::npos);
    CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  }
}

TEST_CASE("verify knows a reference for every kernel of the registry", "[cli]") {
  const Command command;
  for (const KernelFamily& family : kernel_families()) {
    Command::Arguments arguments = {"verify", "--kernel", family.name, "--seed", "77"};
    for (const FieldInfo& field : family.fields) {
      if (field.name == "k") arguments.insert(arguments.end(), {"--k", "768"});
      if (field.name == "n") arguments.insert(arguments.end(), {"--n", "33"});
      if (field.name == "n_b" && field.default_value != "0")  // of as many rows
        arguments.insert(arguments.end(), {"--n-b", "33"});
      if (field.name == "vectors") arguments.insert(arguments.end(), {"--vectors", "1029"});
    }
    INFO(family.name);
    const json report = command.run_json(arguments);
    CHECK(report["summary"]["equal"] == 1);
    CHECK(report["summary"]["values"] == values_of(family.name));
  }
}

TEST_CASE("verify says why a tensor is skipped, and escapes what a file calls it", "[cli]") {
  const Command command;
  const auto write = [&](const GgufWriter& file) {
    const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.size());
    REQUIRE(write_file(command.folder() / "model.gguf", bytes));
  };
  write(every_kind());
  json report = command.run_json({"verify", "--gguf", "model.gguf"});
  CHECK(tensors(report, "equal") == std::vector<std::string>{"weights"});
  CHECK(tensors(report, "skipped") == std::vector<std::string>{"bias", "exotic"});
  CHECK(report["tensors"][1]["detail"] == "not quantised");
  CHECK(report["tensors"][2]["detail"] == "ggml type 999 is not known");

  GgufWriter file;
  constexpr std::uint32_t kQ8_0 = 8, kIq4Nl = 20;
  file.header(2, 0).tensor("red\x1b[31m\n\xff", {32}, kQ8_0, 0).tensor("other", {32}, kIq4Nl, 64);
  write(file.align(32).data(34).align(32).data(18));
  const Finished text = command.run({"verify", "--gguf", "model.gguf"});
  CHECK(text.exit_status == 0);
  CHECK(text.out.find('\x1b') == std::string::npos);
  CHECK(text.out.find("red?[31m | \xff") != std::string::npos);
  CHECK(text.out.find("skipped: no kernel for iq4_nl") != std::string::npos);
  CHECK(command.run_json({"verify", "--gguf", "model.gguf"})["tensors"].size() == 2);
}

TEST_CASE("a quantised tensor that no kernel takes is a failure", "[cli]") {
  const Command command;
  constexpr std::uint64_t kLongestRow = 1 << 24;
  GgufWriter file;
  constexpr std::uint32_t kQ4_0 = 2;
  file.header(2, 0).tensor("good", {32}, kQ4_0, 0).tensor("long", {kLongestRow + 32}, kQ4_0, 32);
  file.align(32).data(18).align(32);
  REQUIRE(write_file(command.folder() / "model.gguf",
                     {reinterpret_cast<const char*>(file.bytes().data()), file.size()}));
  std::filesystem::resize_file(command.folder() / "model.gguf", file.size() + (kLongestRow / 32 + 1) * 18);
  const json report = command.run_json({"verify", "--gguf", "model.gguf"}, 1);
  CHECK(tensors(report, "equal") == std::vector<std::string>{"good"});
  CHECK(tensors(report, "failed") == std::vector<std::string>{"long"});
  CHECK(report["tensors"][1]["detail"].get<std::string>().find("16777248") != std::string::npos);
}

// What ran is no kernel of ours: a driver that computes nothing.
#ifdef PTXGEN_FAKE_CUDA
TEST_CASE("verify sees results that are wrong", "[cli]") {
  Command command;
  command.environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA}};
  const json report = command.run_json(verify_layer(), 1);
  CHECK(report["verified"] == false);
  CHECK(tensors(report, "equal").empty());
  CHECK(tensors(report, "differs").size() == 11);
  CHECK(report["summary"]["mismatches"] > 3000000);
  for (const json& row : report["tensors"]) {
    if (row["result"] != "differs") continue;
    CHECK(row["mismatches"] > 0);
    CHECK(row["detail"].get<std::string>().find("expected") != std::string::npos);
  }
  const Finished text = command.run({"verify", "--kernel", "copy", "--vectors", "3"});
  CHECK(text.exit_status == 1);
  CHECK(text.out.find("NOT VERIFIED: 1 differ") != std::string::npos);
  CHECK(text.out.find("differs: dst: 48 of 48 bytes differ: [0] expected 0x") != std::string::npos);
}
#endif
