#include <array>
#include <cstring>

#include "tests/cli/child.h"
#include "tests/support/catch.h"

using namespace ptxgen;
using namespace ptxgen::testing;
using Catch::Matchers::Contains;

namespace {

// y[i] = f * x[i] + y[i] for i below n; x, y, f, n, and a structure whose second word is added.
constexpr const char* kText = R"(.version 8.0
.target sm_80
.address_size 64
.extern .shared .b32 staged[];
.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 f, .param .u32 n, .param .align 4 .b8 s[8]) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [f];
  ld.param.u32 %r1, [n];
  ld.param.f32 %f5, [s+4];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1;
  @%p exit;
  mad.wide.u32 %rd3, %r2, 4, %rd1;
  mad.wide.u32 %rd4, %r2, 4, %rd2;
  ld.global.f32 %f2, [%rd3];
  ld.global.f32 %f3, [%rd4];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  add.rn.f32 %f4, %f4, %f5;
  st.global.f32 [%rd4], %f4;
  ret;
}
.visible .entry other(.param .u64 out) {
  .reg .b32 %r; .reg .b64 %rd<3>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r, %tid.x;
  setp.eq.u32 %p, %r, 1;
  mad.wide.u32 %rd2, %r, 4, %rd1;
  @!%p st.global.u32 [%rd2], %r;
  ret;
}
)";

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Folder {
  Folder() {
    std::vector<float> x(100), y(100);
    for (std::size_t i = 0; i < 100; ++i) {
      x[i] = static_cast<float>(i);
      y[i] = static_cast<float>(i) / 4;
    }
    REQUIRE(write_file(command.folder() / "k.ptx", kText));
    REQUIRE(write_file(command.folder() / "x", bytes_of(x)));
    REQUIRE(write_file(command.folder() / "y", bytes_of(y)));
  }
  Finished run(std::vector<std::string> more, std::vector<std::string> base = kAxpy) const {
    base.insert(base.end(), more.begin(), more.end());
    return command.run(base);
  }
  static inline const std::vector<std::string> kAxpy = {"emulate", "k.ptx", "--entry", "axpy",
                                                        "--grid",  "4",     "--block", "32"};
  static inline const std::vector<std::string> kGiven = {
      "--in",      "0=x",   "--in",      "1=y",   "--arg",
      "2=f32:0.5", "--arg", "3=u32:100", "--arg", "4=hex:000000000000803f"};
  Command command;
};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void check_result(const Folder& folder, const std::string& file) {
  const std::string out = read_file(folder.command.folder() / file).value();
  REQUIRE(out.size() == 400);
  std::array<float, 100> values;
  std::memcpy(values.data(), out.data(), 400);
  for (std::size_t i = 0; i < 100; ++i) CHECK(values[i] == static_cast<float>(i) * 0.75f + 1);
}

}  // namespace

TEST_CASE("emulate runs PTX on files, by the places of parameters", "[cli][emulate]") {
  const Folder folder;
  const Finished finished =
      folder.run(Folder::kGiven + std::vector<std::string>{"--out", "1=z", "--seed", "3", "--workers", "2"});
  INFO(finished.err);
  CHECK(finished.exit_status == 0);
  CHECK(finished.out.empty());
  CHECK(finished.err.empty());
  check_result(folder, "z");
  CHECK(folder.run(Folder::kGiven + std::vector<std::string>{"--out", "1=w:400"}).exit_status == 0);
  check_result(folder, "w");
}

TEST_CASE("emulate reads PTX from standard input", "[cli][emulate]") {
  const Folder folder;
  std::string line =
      "cd '" + folder.command.folder().string() + "' && '" + PTXGEN_COMMAND + "' emulate - < k.ptx";
  for (const std::string& argument :
       std::vector<std::string>(Folder::kAxpy.begin() + 2, Folder::kAxpy.end()) + Folder::kGiven)
    line += " " + argument;
  CHECK(std::system((line + " --out 1=z").c_str()) == 0);
  check_result(folder, "z");
}

TEST_CASE("a fault of the kernel is exit status 1 and a message; no file appears", "[cli][emulate]") {
  const Folder folder;
  std::vector<std::string> given = Folder::kGiven;
  given[7] = "3=u32:101";
  const Finished finished = folder.run(given + std::vector<std::string>{"--out", "1=z"});
  CHECK(finished.exit_status == 1);
  CHECK_THAT(finished.err, Contains("kernel 'axpy', PTX line 20") && Contains("thread (4,0,0)") &&
                               Contains("CTA (3,0,0)") &&
                               Contains("0 bytes past the end of allocation 'parameter 0'"));
  CHECK_FALSE(read_file(folder.command.folder() / "z"));
}

TEST_CASE("emulate says which bytes a kernel did not write", "[cli][emulate]") {
  const Folder folder;
  const Finished finished =
      folder.command.run({"emulate", "k.ptx", "--entry", "other", "--block", "4", "--out", "0=z:16"});
  CHECK(finished.exit_status == 0);
  CHECK_THAT(finished.err, Contains("warning: --out 0: ") &&
                               Contains("4 bytes into allocation 'parameter 0'") &&
                               Contains("such bytes are saved as 0"));
  CHECK(read_file(folder.command.folder() / "z") == bytes_of(std::vector<std::uint32_t>{0, 0, 2, 3}));
}

TEST_CASE("emulate refuses what does not fit", "[cli][emulate]") {
  const Folder folder;
  REQUIRE(write_file(folder.command.folder() / "empty", ""));
  REQUIRE(
      write_file(folder.command.folder() / "bad.ptx", ".version 8.0\n.target sm_80\n.entry k() { frob; }\n"));
  const auto refused = [&](const Finished& finished) {
    CHECK(finished.exit_status == 2);
    CHECK(finished.out.empty());
    return finished.err;
  };
  const auto with = [&](const std::vector<std::string>& more) { return refused(folder.run(more)); };
  CHECK_THAT(with({"--in", "0=x"}), Contains("parameter 1 'y' of kernel 'axpy', of 8 bytes, has no value"));
  CHECK_THAT(with(Folder::kGiven + std::vector<std::string>{"--arg", "5=u32:1"}),
             Contains("has no parameter 5; they are numbered 0 to 4"));
  CHECK_THAT(with(Folder::kGiven + std::vector<std::string>{"--arg", "0=u64:1"}),
             Contains("parameter 0 'x' of kernel 'axpy' is given twice"));
  CHECK_THAT(with({"--in", "0=x", "--in", "0=y"}), Contains("--in gives '0' twice"));
  CHECK_THAT(with({"--in", "x=x"}), Contains("--in gives 'x'; parameters are named by their place"));
  CHECK_THAT(with({"--in", "2=x"}), Contains("parameter 2 'f' of kernel 'axpy' has 4 bytes, and is given 8"));
  CHECK_THAT(with({"--in", "0=empty"}), Contains("empty is empty"));
  CHECK_THAT(with({"--in", "0=missing"}), Contains("missing"));
  CHECK_THAT(with({"--in", "0"}), Contains("give it as --in I=FILE"));
  CHECK_THAT(with({"--out", "1=z"}), Contains("say how many bytes the buffer has"));
  CHECK_THAT(with({"--out", "1=z:0"}), Contains("0 bytes"));
  CHECK_THAT(with({"--in", "1=y", "--out", "1=z:404"}),
             Contains("--out 1 says 404 bytes, and the file of --in 1 has 400"));
  CHECK_THAT(with({"--arg", "3=u32:-1"}),
             Contains("--arg 3 is '-1'; give a whole number from 0 to 4294967295"));
  CHECK_THAT(with({"--arg", "3=u64:1"}),
             Contains("parameter 3 'n' of kernel 'axpy' has 4 bytes, and is given 8"));
  CHECK_THAT(with({"--arg", "3=w32:1"}), Contains("types are u8, s8") && Contains("f64, hex"));
  CHECK_THAT(with({"--arg", "4=hex:123"}), Contains("two hexadecimal digits a byte"));
  CHECK_THAT(with({"--trace", "4"}), Contains("--trace is '4'; grid and block have no such CTA or thread"));
  CHECK_THAT(with({"--trace", "0:32"}), Contains("no such CTA or thread"));
  CHECK_THAT(refused(folder.command.run({"emulate", "k.ptx", "--block", "1"})),
             Contains("no --entry is given; the module has axpy, other"));
  CHECK_THAT(refused(folder.command.run({"emulate", "k.ptx", "--entry", "k", "--block", "1"})),
             Contains("--entry 'k' is not there; the module has axpy, other"));
  CHECK_THAT(refused(folder.command.run({"emulate", "k.ptx", "--entry", "other", "--block", "1,2,3,4"})),
             Contains("--block is '1,2,3,4'; give one to three whole numbers"));
  CHECK_THAT(refused(folder.command.run(
                 {"emulate", "k.ptx", "--entry", "other", "--block", "1025", "--out", "0=z:4"})),
             Contains("block (1025,1,1); allowed are"));
  CHECK_THAT(refused(folder.command.run({"emulate", "bad.ptx", "--block", "1"})),
             Contains("PTX line 3: unknown instruction 'frob'"));
  CHECK_THAT(refused(folder.command.run({"emulate", "k.ptx", "--entry", "other"})), Contains("--block"));
  CHECK_FALSE(read_file(folder.command.folder() / "z"));
}

TEST_CASE("emulate --trace prints what one thread executes", "[cli][emulate]") {
  const Folder folder;
  const Finished finished = folder.run(Folder::kGiven + std::vector<std::string>{"--trace", "1:4"});
  CHECK(finished.exit_status == 0);
  CHECK_THAT(finished.out,
             Contains("axpy:15  mad.lo.u32 %r2, %r2, %r3, %r4   %r2=0x1 %r3=0x20 %r4=0x4  -> %r2=0x24\n"));
  CHECK_THAT(finished.out, Contains("axpy:17  @%p exit   %p=0  (not executed)\n"));
  CHECK_THAT(finished.out, Contains("fma.rn.f32 %f4, %f1, %f2, %f3   %f1=0x3f000000 (0.5) %f2=0x42100000 "
                                    "(36) %f3=0x41100000 (9)  -> %f4=0x41d80000 (27)\n"));
}

TEST_CASE("emulate --profile counts", "[cli][emulate]") {
  const Folder folder;
  const Finished finished = folder.run(Folder::kGiven + std::vector<std::string>{"--profile"});
  CHECK(finished.exit_status == 0);
  CHECK_THAT(finished.out,
             Contains("global load requests") && Contains("floating point") && Contains("bytes read"));
  const nlohmann::json json = folder.command.run_json(Folder::kAxpy + Folder::kGiven);
  CHECK(json["global_loads"] == 8);
  CHECK(json["load_sectors"] == 26 / 8.0);  // three warps of 4 sectors and one of a single, twice
  CHECK(json["load_bytes_used"] == 800.0 / (26 * 32));
  CHECK(json["thread_instructions"] == 128 * 11 + 100 * 8 - 100);
}

TEST_CASE("explain shows what the first CTAs do", "[cli][emulate]") {
  const Command command;
  const Command::Arguments arguments = {"explain", "--kernel", "q4k_dequant", "--k", "1024", "--n", "64"};
  const Finished finished = command.run(arguments);
  CHECK(finished.exit_status == 0);
  CHECK_THAT(finished.out, Contains("CTAs, on the emulator:") && Contains("sectors a store request"));
  const nlohmann::json json = command.run_json(arguments)["emulated"];
  CHECK(json["ctas"].get<int>() >= 1);
  CHECK(json["store_bytes_used"] == 1.0);
  CHECK(json["divergent_branches"].is_number());
  const nlohmann::json large =
      command.run_json({"explain", "--kernel", "q4k_dequant", "--k", "16384", "--n", "65536"})["emulated"];
  CHECK_THAT(large["reason"].get<std::string>(), Contains("more than 256 MiB"));
}
