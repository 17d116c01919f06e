#include "ptxgen/format.h"
#include "tests/cli/child.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace ptxgen;
using namespace ptxgen::testing;

namespace {

// tests/data/blocks: 8 rows of 1024 weights.
Command::Arguments dequant(const FormatInfo& format, const std::string& weights, const std::string& out) {
  return {"run",   "--kernel",  std::string(format.name) + "_dequant",
          "--k",   "1024",      "--n",
          "8",     "--in",      "weights=" + weights,
          "--out", "out=" + out};
}

}  // namespace

TEST_CASE("run dequantises ggml's blocks to ggml's floats", "[cli]") {
  const Command command;
  for (const FormatInfo& format : kFormats) {
    const std::string stem = "blocks/" + std::string(format.ggml_name);
    INFO(stem);
    const Finished finished = command.run(dequant(format, data_path(stem + ".bin"), "out"));
    INFO(finished.err);
    CHECK(finished.exit_status == 0);
    CHECK(finished.out.empty());
    CHECK(finished.err.find("on emulated device") != std::string::npos);  // which device it was
    CHECK(read_file(command.folder() / "out") == read_file(data_path(stem + "_f32.bin")));
  }
  CHECK(command.files() == std::vector<std::string>{"out"});
}

TEST_CASE("one other bit in the weights is other floats", "[cli]") {
  const Command command;
  for (const FormatInfo& format : kFormats) {
    const std::string stem = "blocks/" + std::string(format.ggml_name);
    INFO(stem);
    std::string weights = read_file(data_path(stem + ".bin")).value();
    weights[weights.size() / 2] ^= 0x10;
    REQUIRE(write_file(command.folder() / "weights", weights));
    CHECK(command.run(dequant(format, "weights", "out")).exit_status == 0);
    CHECK(read_file(command.folder() / "out") != read_file(data_path(stem + "_f32.bin")));
  }
}

TEST_CASE("run reads pipes, writes to pipes, and may overwrite its input", "[cli]") {
  Command command;
  std::string content;
  for (int i = 0; i < 48; ++i) content += static_cast<char>(i * 5 + 1);
  REQUIRE(write_file(command.folder() / "file", content));
  const Finished same =
      command.run({"run", "--kernel", "copy", "--vectors", "3", "--in", "src=file", "--out", "dst=file"});
  CHECK(same.exit_status == 0);
  CHECK(read_file(command.folder() / "file") == content);

  const std::string line = "cd '" + command.folder().string() + "' && cat file | '" + PTXGEN_COMMAND +
                           "' run --device emulator --kernel copy --vectors 3 --in src=/dev/stdin --out "
                           "dst=/dev/stdout 2>/dev/null | cat > piped";
  CHECK(std::system(line.c_str()) == 0);
  CHECK(read_file(command.folder() / "piped") == content);
}

TEST_CASE("run leaves an existing output alone until the new one is whole", "[cli]") {
  const Command command;
  REQUIRE(write_file(command.folder() / "out", "precious"));
  REQUIRE(write_file(command.folder() / "short", "too short"));
  CHECK(command.run(dequant(kFormats[0], "short", "out")).exit_status == 2);
  CHECK(read_file(command.folder() / "out") == "precious");
  CHECK(command.files() == std::vector<std::string>{"out", "short"});
}

TEST_CASE("PTXGEN_DUMP shows what run used", "[cli]") {
  Command command;
  command.environment["PTXGEN_DUMP"] = (command.folder() / "dump").string();
  REQUIRE(write_file(command.folder() / "in", std::string(16, 'v')));
  CHECK(command.run({"run", "--kernel", "copy", "--vectors", "1", "--in", "src=in", "--out", "dst=out"})
            .exit_status == 0);
  std::size_t ptx = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(command.folder() / "dump"))
    ptx += entry.path().filename() == "kernel.ptx";
  CHECK(ptx == 1);
}
